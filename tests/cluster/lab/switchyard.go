// SPDX-License-Identifier: Apache-2.0

package lab

// SwitchyardBin is the folder of the switchyard and switchyard-sim that the cluster runs.
func (c *Cluster) SwitchyardBin() string { return c.options.SwitchyardBin }

// Inside is a file of the cluster's folder as programs inside know it; Path is as the test does.
func Inside(parts ...string) string { return within(parts...) }
