package kubeconfig

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/clusterregistry/operator/cli/command"
)

// show writes what a person has to confirm, and what becomes of the rest. What changes
// comes last, where it is seen: most of what is there is new in a first run only.
func (p plan) show(w io.Writer) {
	for _, change := range p.changes {
		if change.before == nil {
			fmt.Fprintf(w, "+ %s (new)\n", change.after.Name)
			change.show(w)
		}
	}
	for _, refused := range p.refused {
		fmt.Fprintf(w, "! %s refused: %s\n", command.Plain(refused.cluster), refused.reason)
	}
	for _, name := range p.pruned {
		fmt.Fprintf(w, "- %s (no longer in the registry)\n", command.Plain(name))
	}
	for _, change := range p.changes {
		if change.before != nil {
			fmt.Fprintf(w, "~ %s (CHANGED)\n", change.after.Name)
			change.show(w)
		}
	}
}

// show writes where an entry leads a person, how they sign in there, and what that
// sends.
func (c change) show(w io.Writer) {
	before, known, after := entry{}, c.before != nil, c.after
	if known {
		before = *c.before
	}
	line(w, known, "server", before.Server, after.Server)
	line(w, known, "CA", authorities(before.CA), authorities(after.CA))
	line(w, known, "certificate for", orNone(before.TLSServerName, "the server's host"), orNone(after.TLSServerName, "the server's host"))
	line(w, known, "proxy", orNone(before.Proxy, "none"), orNone(after.Proxy, "none"))
	line(w, known, "runs", orNone(before.commandLine(), "nothing"), orNone(after.commandLine(), "nothing"))
	if known && before.APIVersion != after.APIVersion {
		line(w, known, "version of its answer", orNone(before.APIVersion, "none"), orNone(after.APIVersion, "none"))
	}
	if before.ClusterInfo != after.ClusterInfo {
		line(w, known, "tells it server and CA", yesNo(before.ClusterInfo), yesNo(after.ClusterInfo))
	}
	if mode := after.Interactive; mode != "" && mode != clientcmdapi.IfAvailableExecInteractiveMode || known && mode != before.Interactive {
		line(w, known, "may ask you", asks(before.Interactive), asks(mode))
	}
	if len(before.Foreign) > 0 {
		line(w, known, "set by hand", strings.Join(before.Foreign, ", "), "nothing")
	}
	switch {
	case after.Command != "":
		fmt.Fprintf(w, "    sends: %s, to this server\n", sends(after.Command, after.Args))
		if c.kept != "" {
			fmt.Fprintf(w, "    with what you have set for your user: %s\n", c.kept)
		}
		if c.user != "" {
			fmt.Fprintf(w, "    signs in as: what that program says, and no longer as your user %q\n", command.Plain(c.user))
		}
	case c.user != "":
		fmt.Fprintf(w, "    signs in as: your user %q, whose credentials go to this server\n", command.Plain(c.user))
	}
	if c.otherCA {
		fmt.Fprintln(w, "    note: it is from a registry at the same address that had another CA")
	}
	for _, note := range after.notes {
		fmt.Fprintf(w, "    note: %s\n", note)
	}
}

// question names what a person agrees to.
func (p plan) question() string {
	changed := 0
	for _, change := range p.changes {
		if change.before != nil {
			changed++
		}
	}
	if len(p.changes) == 0 {
		return fmt.Sprintf("Remove %d of the %d entries that were chosen in this way?", len(p.pruned), p.scope)
	}
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{{changed, "CHANGED"}, {len(p.changes) - changed, "new"}, {len(p.pruned), "removed"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	return "Use these servers, CAs, proxies and programs (" + strings.Join(parts, ", ") + ")?"
}

// asks says when a program may ask the person.
func asks(mode clientcmdapi.ExecInteractiveMode) string {
	switch mode {
	case clientcmdapi.NeverExecInteractiveMode:
		return "never"
	case clientcmdapi.IfAvailableExecInteractiveMode:
		return "where there is a terminal"
	case clientcmdapi.AlwaysExecInteractiveMode:
		return "always, and it is not run where there is no terminal"
	}
	return "not set"
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// line writes one fact, and what it was before where that is another one.
func line(w io.Writer, known bool, name, before, after string) {
	if known && before != after {
		fmt.Fprintf(w, "    %s: %s -> %s\n", name, distinct(before), distinct(after))
		return
	}
	fmt.Fprintf(w, "    %s: %s\n", name, distinct(after))
}

// distinct returns a text that can't be mistaken for another: with escapes in the
// place of letters of other alphabets, some of which look like Latin ones.
func distinct(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return strconv.QuoteToASCII(text)
	}
	return text
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}

// authorities describes a CA bundle: its fingerprint, that of its first certificate,
// whose it is and until when, and how many follow.
func authorities(bundle []byte) string {
	if len(bundle) == 0 {
		return "this computer's own authorities"
	}
	out := fmt.Sprintf("sha256 %x: ", sha256.Sum256(bundle))
	block, rest := pem.Decode(bundle)
	if block == nil {
		return out + "not a certificate"
	}
	out += fmt.Sprintf("certificate %x", sha256.Sum256(block.Bytes))
	if certificate, err := x509.ParseCertificate(block.Bytes); err == nil {
		out += fmt.Sprintf(" %+q until %s", certificate.Subject.String(), certificate.NotAfter.UTC().Format(time.DateOnly))
	}
	if more := bytes.Count(rest, []byte("-----BEGIN CERTIFICATE-----")); more > 0 {
		out += fmt.Sprintf(" and %d more", more)
	}
	return out
}
