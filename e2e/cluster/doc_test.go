// Package cluster tells the story of the local cluster itself: all that later
// stories lean on (volumes, DNS, certificates, node faults, images of this
// repository) is what it claims to be.
package cluster
