// Package imports has the test of the rules in .golangci.yml that say which package
// may import which.
package imports
