package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"time"

	"github.com/clusterregistry/operator/cli/command"
)

// show writes what a person has to confirm, and what becomes of the rest.
func (p plan) show(w io.Writer) {
	for _, change := range p.changes {
		after := change.after
		if change.before == nil {
			fmt.Fprintf(w, "+ %s (new)\n", after.Name)
		} else {
			fmt.Fprintf(w, "~ %s (CHANGED)\n", after.Name)
		}
		before := entry{}
		if change.before != nil {
			before = *change.before
		}
		line(w, change.before != nil, "server", before.Server, after.Server)
		line(w, change.before != nil, "CA", authorities(before.CA), authorities(after.CA))
		line(w, change.before != nil, "certificate for", orNone(before.TLSServerName, "the server's host"), orNone(after.TLSServerName, "the server's host"))
		line(w, change.before != nil, "proxy", orNone(before.Proxy, "none"), orNone(after.Proxy, "none"))
		line(w, change.before != nil, "runs", orNone(before.commandLine(), "nothing"), orNone(after.commandLine(), "nothing"))
		for _, note := range after.notes {
			fmt.Fprintf(w, "    note: %s\n", note)
		}
	}
	for _, name := range p.pruned {
		fmt.Fprintf(w, "- %s (no longer in the registry)\n", command.Plain(name))
	}
	for _, refused := range p.refused {
		fmt.Fprintf(w, "! %s refused: %s\n", command.Plain(refused.cluster), refused.reason)
	}
}

// line writes one fact, and what it was before where that is another one.
func line(w io.Writer, known bool, name, before, after string) {
	if known && before != after {
		fmt.Fprintf(w, "    %s: %s -> %s\n", name, command.Plain(before), command.Plain(after))
		return
	}
	fmt.Fprintf(w, "    %s: %s\n", name, command.Plain(after))
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// authorities describes a CA bundle: the fingerprint of its first certificate, whose
// it is and until when, and how many follow.
func authorities(bundle []byte) string {
	if len(bundle) == 0 {
		return "this computer's own authorities"
	}
	block, rest := pem.Decode(bundle)
	if block == nil {
		return fmt.Sprintf("not a certificate, sha256 %x", sha256.Sum256(bundle))
	}
	out := fmt.Sprintf("sha256 %x", sha256.Sum256(block.Bytes))
	if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
		out += fmt.Sprintf(" %q until %s", certificate.Subject.String(), certificate.NotAfter.UTC().Format(time.DateOnly))
	}
	if more := bytes.Count(rest, []byte("-----BEGIN CERTIFICATE-----")); more > 0 {
		out += fmt.Sprintf(" and %d more, sha256 of all %x", more, sha256.Sum256(bundle))
	}
	return out
}
