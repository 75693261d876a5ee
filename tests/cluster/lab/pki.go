// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// authority signs the certificates of one cluster. They are good for a day.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         []byte
	serial      int64
}

// identity is one end's certificate and key, as PEM.
type identity struct{ certificate, key []byte }

func template(name, organization string, serial int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name, Organization: []string{organization}},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := template("switchyard-cluster", "tests", 1)
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &authority{certificate: root, key: key, pem: block("CERTIFICATE", der), serial: 1}, nil
}

// issue makes a certificate for a user (name and group) and for the API server's addresses.
func (a *authority) issue(name, group string) (identity, error) {
	a.serial++
	leaf := template(name, group, a.serial)
	leaf.DNSNames = []string{"localhost", nodeName, "kubernetes", "kubernetes.default.svc"}
	leaf.IPAddresses = []net.IP{
		net.ParseIP("127.0.0.1"), net.ParseIP(serviceIP), net.ParseIP(nodeIP),
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return identity{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return identity{}, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	return identity{block("CERTIFICATE", der), block("EC PRIVATE KEY", private)}, err
}

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// The users of the cluster and the groups that Kubernetes knows them by.
var users = map[string]struct{ name, group string }{
	"apiserver":   {"kube-apiserver", "tests"},
	"admin":       {"admin", "system:masters"},
	"kubelet":     {"system:node:" + nodeName, "system:nodes"},
	"controllers": {"system:kube-controller-manager", "tests"},
	"scheduler":   {"system:kube-scheduler", "tests"},
}

// writePKI makes pki/NAME.crt and .key, NAME.kubeconfig, and the key of service accounts.
func (c *Cluster) writePKI() error {
	a, err := newAuthority()
	if err != nil {
		return err
	}
	c.authority = a.pem
	problems := []error{os.WriteFile(c.Path("pki/ca.crt"), a.pem, 0o600)}
	for file, user := range users {
		id, err := a.issue(user.name, user.group)
		if file == "admin" {
			c.admin = id
		}
		problems = append(problems, err,
			os.WriteFile(c.Path("pki", file+".crt"), id.certificate, 0o600),
			os.WriteFile(c.Path("pki", file+".key"), id.key, 0o600),
			os.WriteFile(c.Path(file+".kubeconfig"), []byte(kubeconfig(file)), 0o600))
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	private, err := x509.MarshalECPrivateKey(key)
	problems = append(problems, err)
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	problems = append(problems, err,
		os.WriteFile(c.Path("pki/sa.key"), block("EC PRIVATE KEY", private), 0o600),
		os.WriteFile(c.Path("pki/sa.pub"), block("PUBLIC KEY", public), 0o600))
	return errors.Join(problems...)
}
