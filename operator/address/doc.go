// Package address says where clients from outside reach an independent registry: its
// addresses (address.go), its URL (url.go), and the port of the nodes, which stays when
// the Service is made again (nodeport.go). Nothing here writes.
package address
