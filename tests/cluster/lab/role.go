// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"os"
)

// The processes of a cluster that are this very program, started anew: a test binary needs no second
// one beside it. The variable says which; no child inherits it.
const (
	roleVariable = "CLUSTER_LAB_ROLE"
	roleKeeper   = "keeper"
	roleInit     = "init"
)

func init() {
	role := os.Getenv(roleVariable)
	_ = os.Unsetenv(roleVariable)
	var err error
	switch role {
	case "":
		return
	case roleKeeper:
		err = runKeeper(os.Args[1])
	case roleInit:
		err = runInit(os.Args[1])
	default:
		err = fmt.Errorf("%s=%s: no such role", roleVariable, role)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "cluster: %s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}
