// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"
)

// What the cluster's init is asked over control.sock: one request and one answer a connection, each a
// line of JSON. After the answer to "dial" the connection is that to the address.
type request struct {
	Op string `json:"op"` // start, signal, wait, dial, bind

	Name   string   `json:"name,omitempty"` // of a component
	Argv   []string `json:"argv,omitempty"` // start: absolute path first
	Env    []string `json:"env,omitempty"`
	Log    string   `json:"log,omitempty"` // start: both streams are appended to it
	Signal int      `json:"signal,omitempty"`

	Address string `json:"address,omitempty"` // dial: TCP
	From    string `json:"from,omitempty"`    // bind
	To      string `json:"to,omitempty"`
}

type answer struct {
	Error  string `json:"error,omitempty"`
	Status string `json:"status,omitempty"` // wait: "exit status 1", "signal: killed"
}

// ask sends one request; `conn` is open on success only.
func ask(socket string, r request) (answer, net.Conn, *bufio.Reader, error) {
	fail := func(err error) (answer, net.Conn, *bufio.Reader, error) {
		return answer{}, nil, nil, fmt.Errorf("asking the cluster's init to %s %s%s: %w", r.Op, r.Name,
			r.Address, err)
	}
	conn, err := net.DialTimeout("unix", socket, 10*time.Second)
	if err != nil {
		return fail(err)
	}
	reader := bufio.NewReader(conn)
	var a answer
	if err = json.NewEncoder(conn).Encode(r); err == nil {
		var line []byte
		if line, err = reader.ReadBytes('\n'); err == nil {
			err = json.Unmarshal(line, &a)
		}
	}
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	if err != nil {
		conn.Close()
		return fail(err)
	}
	return a, conn, reader, nil
}

func (c *Cluster) ask(r request) (answer, error) {
	a, conn, _, err := ask(c.Path("control.sock"), r)
	if err == nil {
		conn.Close()
	}
	return a, err
}

// Dial connects to a TCP address inside the cluster's network.
func (c *Cluster) Dial(address string) (net.Conn, error) {
	_, conn, reader, err := ask(c.Path("control.sock"), request{Op: "dial", Address: address})
	if err != nil {
		return nil, err
	}
	return &tunnel{Conn: conn, reader: reader}, nil
}

// tunnel reads what came right behind the answer first.
type tunnel struct {
	net.Conn
	reader *bufio.Reader
}

func (t *tunnel) Read(p []byte) (int, error) { return t.reader.Read(p) }
