// Package reliability has a registry go through what is done to it and what happens to it at
// the same time: every long operation under every fault, while clients send 200 requests a
// second and every answer is recorded. A cell is one operation under one fault, and passes
// when the answers fit one registry that loses nothing, when no more requests failed than the
// cell allows, and when all etcd members have the same data at the end.
//
// What can't be had here: clocks that differ from node to node, since all nodes share the
// kernel of one computer, and programs of static Go can't be told another time.
package reliability
