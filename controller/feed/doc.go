// Package feed answers programs that ask for the clusters of a registry, over HTTPS, in the
// format that each of them reads. It only answers: it writes nothing anywhere.
//
// These programs delete what an answer no longer has, so that an answer is complete or an error:
// every cluster of the registry that the caller may see and that its selector selects is in it,
// and has an address only if that was verified and clients may be led there. Callers are known by
// tokens that are meant for this endpoint alone, and see what the host cluster permits them.
//
// Whoever writes an entry has no text of their own in an answer: names, IDs, addresses and labels
// are published as far as they have no character that a template, a shell or a spreadsheet acts
// on, and CA certificates in base64.
package feed
