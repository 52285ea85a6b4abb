package etcd

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterregistry/operator/cli/command"
)

// print writes the members for people: the verdict first.
func (m *Members) print(w io.Writer) error {
	out, word := &strings.Builder{}, "OK"
	if m.Attention {
		word = "ATTENTION"
	}
	kind := "etcd members"
	if m.External {
		kind = "members of an external etcd"
	}
	fmt.Fprintf(out, "%s: %s/%s, %s %s ready", word, m.Namespace, m.Name, dash(m.Ready), kind)
	if m.Operation != "" {
		fmt.Fprintf(out, ", under way: %s", command.Plain(m.Operation))
	}
	out.WriteString("\n")
	if m.Problem != "" {
		fmt.Fprintf(out, "  %s\n", command.Plain(m.Problem))
	}
	rows := [][]string{{"MEMBER", "READY", "ROLE", "VERSION", "ID", "SIZE", "IN USE", "FREE", "QUOTA", "DEFRAGMENTED", "VOLUME", "NODE"}}
	for _, one := range m.Members {
		rows = append(rows, one.row())
	}
	if len(m.Members) > 0 {
		out.WriteString("\n")
		command.Table(out, rows)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (m Member) row() []string {
	free, defragmented, ready := "", "", fmt.Sprint(m.Ready)
	if m.FreePercent != nil {
		free = fmt.Sprintf("%d%%", *m.FreePercent)
	}
	if m.Defragmented != nil {
		defragmented = m.Defragmented.UTC().Format(time.DateTime)
	}
	if m.Lost != nil {
		ready = "data lost"
	}
	return []string{m.Name, ready, m.Role, m.Version, m.ID, size(m.DatabaseSize), size(m.InUse), free, size(m.Quota), defragmented, m.Volume, m.Node}
}

// size returns a size, nothing when it is not known.
func size(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// text returns a field of an object, nothing when it has none.
func text(object map[string]any, path ...string) string {
	found, _, _ := unstructured.NestedString(object, path...)
	return found
}
