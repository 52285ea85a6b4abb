package restore

import (
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
)

// print writes the plan for people: a manifest to apply, with all else as comments, the verdict
// first.
func (p *Plan) print(w io.Writer) error {
	manifest, err := yaml.Marshal(p.Manifest)
	if err != nil {
		return fmt.Errorf("write the manifest: %w", err)
	}
	out, word := &strings.Builder{}, "OK"
	if p.Attention {
		word = "ATTENTION"
	}
	fmt.Fprintf(out, "%s: %s.\n\n", word, command.Plain(p.Verdict))
	if p.Backup != nil {
		p.table(out)
	}
	for _, list := range []struct {
		name string
		all  []string
	}{{"Lost", p.Lost}, {"Needed first", p.Needed}, {"Not known here", p.Unknown}, {"Note", p.Notes}} {
		for _, line := range list.all {
			fmt.Fprintf(out, "%s: %s.\n", list.name, command.Plain(line))
		}
	}
	out.WriteString("\nNothing was changed. This does it; kubectl apply -f reads it with the comments.\n")
	var comments strings.Builder
	for line := range strings.Lines(out.String()) {
		comments.WriteString(strings.TrimRight("# "+strings.TrimRight(line, "\n"), " ") + "\n")
	}
	_, err = io.WriteString(w, comments.String()+string(manifest))
	return err
}

// table writes what is known of the backup.
func (p *Plan) table(out *strings.Builder) {
	var rows [][]string
	row := func(name, value string) {
		if value != "" {
			rows = append(rows, []string{"  " + name, value})
		}
	}
	b := p.Backup
	row("From", b.Location)
	row("Lineage", b.Lineage)
	row("Taken", backup.Moment(b.TakenTime, p.now))
	if b.VerifiedTime == nil {
		row("Verified", "never")
	}
	row("Verified", backup.Moment(b.VerifiedTime, p.now))
	row("Revision", fmt.Sprint(b.Revision))
	row("Size", backup.Size(b.Bytes))
	row("Keys", backup.Keys(b.Keys))
	row("Release", b.Release)
	row("etcd", b.EtcdVersion)
	row("Encrypted with", strings.Join(b.EncryptionKeys, ", "))
	command.Table(out, rows)
	out.WriteString("\n")
}
