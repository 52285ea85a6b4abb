package main

import (
	"os"
	"strings"
	"testing"
)

// longPage has the sessions that are too long for a page that people read, or show nothing but that it worked.
const longPage = "testdata/sessions.md"

// long are the commands whose sessions are there.
var long = []string{"export", "grant", "restore plan", "recover plan", "upgrade plan", "upgrade to", "etcd defrag", "etcd replace", "etcd rotate-ca",
	"backup create", "backup show", "backup verify", "unjoin", "can-see", "report",
	"clusters", "import", "etcd members", "backup list", "diagnose", "kubeconfig"}

func read(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// recorded returns a page with what a session shows in its section.
func recorded(t *testing.T, text string, s session, seen string) string {
	t.Helper()
	begin := strings.Index(text, "\n## "+s.section+"\n")
	if begin < 0 {
		t.Fatalf("the page has no section %q", s.section)
	}
	block := "```console\n$ " + s.line + "\n" + seen + "```\n"
	rest := text[begin+1:]
	end := len(rest)
	if next := strings.Index(rest, "\n## "); next >= 0 {
		end = next + 1
	}
	section := rest[:end]
	if from := strings.Index(section, "```console\n$ "+s.line+"\n"); from >= 0 {
		to := from + strings.Index(section[from:], "\n```\n") + len("\n```\n")
		section = section[:from] + block + section[to:]
	} else if rights := strings.Index(section, "**Rights:**"); rights >= 0 {
		// Before the rights, which end each section.
		section = section[:rights] + block + "\n" + section[rights:]
	} else {
		section += block
	}
	return text[:begin+1] + section + rest[end:]
}
