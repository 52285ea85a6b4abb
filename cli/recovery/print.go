package recovery

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/backup"
	"github.com/clusterregistry/operator/cli/command"
)

// print writes the plan for people: the verdict first, then what is in the way, and what there
// is to choose from.
func (p *Plan) print(w io.Writer, now time.Time) error {
	out, word := &strings.Builder{}, "OK"
	if p.Attention {
		word = "ATTENTION"
	}
	line := func(format string, args ...any) {
		out.WriteString(command.Plain(fmt.Sprintf(format, args...)) + "\n")
	}
	line("%s: %s", word, sentence(p.Verdict))
	if p.Loss != nil {
		rows := [][]string{{"  Loss", p.Loss.ID}, {"  Noticed", backup.Moment(&p.Loss.LostTime, now)}}
		if p.Loss.LastRevision > 0 {
			rows = append(rows, []string{"  Newest revision", fmt.Sprintf("%d, as far as it is known: clients may have been answered newer ones", p.Loss.LastRevision)})
		}
		out.WriteString("\n")
		command.Table(out, rows)
		out.WriteString("\n")
	}
	if p.Phase != "" && p.Message != "" {
		line("The operator: %s", sentence(p.Message))
	}
	var gone []string
	for _, g := range p.Gone {
		gone = append(gone, g.Name+": "+g.Message)
	}
	lists := func(all ...list) {
		for _, list := range all {
			for _, text := range list.all {
				line("%s: %s", list.name, sentence(text))
			}
		}
	}
	lists(list{"Waits for", p.WaitsFor}, list{"In the way", p.InTheWay}, list{"Gone", gone})
	if p.Recommendation != "" {
		line("Recommended: %s.", p.Recommendation)
	}
	for i := range p.Copies {
		p.Copies[i].print(line, now)
	}
	if len(p.Copies) > 0 {
		out.WriteString("\n")
	}
	lists(list{"Not known here", p.Unknown}, list{"Note", p.Notes})
	if r := p.Recovered; r != nil {
		line("%s", recovered(r, now))
	}
	line("Nothing was changed.")
	_, err := io.WriteString(w, out.String())
	return err
}

// sentence ends a text with a period.
func sentence(text string) string { return strings.TrimSuffix(text, ".") + "." }

// list is lines of one kind.
type list struct {
	name string
	all  []string
}

// print writes a copy with the command that has the operator continue with it.
func (c *Copy) print(line func(format string, args ...any), now time.Time) {
	title := "Copy: " + c.title()
	if c.Recommended {
		title += " (recommended)"
	}
	if c.Revision > 0 {
		title += fmt.Sprintf(", up to revision %d", c.Revision)
	}
	if c.TakenTime != nil {
		title += ", taken at " + backup.Moment(c.TakenTime, now)
	}
	if c.VerifiedTime != nil {
		title += ", verified " + backup.Ago(c.VerifiedTime, now)
	}
	line("")
	line("%s", title)
	if c.Location != "" {
		line("  At: %s", c.Location)
	}
	if c.Message != "" {
		line("  Known: %s", sentence(c.Message))
	}
	if c.Refused != "" {
		line("  Refused: %s", sentence(c.Refused))
		return
	}
	line("  Lost: %s.", c.Lost)
	line("  %s", c.Command)
}

// recovered says how the last lost quorum was recovered from.
func recovered(r *v1alpha1.RecoveredStatus, now time.Time) string {
	out := fmt.Sprintf("Recovered before: loss %s, noticed at %s, with %s", r.ID, stamp(r.LostTime), (&Copy{From: r.From, Name: r.Name}).title())
	if r.Revision > 0 {
		out += fmt.Sprintf(", which ended with revision %d", r.Revision)
	}
	if r.LastRevision > 0 {
		out += fmt.Sprintf("; the newest that was known is %d", r.LastRevision)
	}
	return out + "; complete at " + backup.Moment(&r.CompletionTime, now) + "."
}
