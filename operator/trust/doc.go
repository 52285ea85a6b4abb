// Package trust decides about a registry's certificate authorities: what is published
// of one that was replaced, and which certificates are to be issued again. It goes by
// certificates alone, and reads and writes nothing. All bundles are in PEM.
package trust
