package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterregistry/operator/apis/clusterregistry/v1beta1"
	operatorv1alpha1 "github.com/clusterregistry/operator/apis/operator/v1alpha1"
	"github.com/clusterregistry/operator/cli/command/commandtest"
)

// paged is a registry of 1000 clusters and one, which notes what it is asked.
type paged struct {
	mu    sync.Mutex
	asked []string
	// watching is the newest watch.
	watching *watch.RaceFreeFakeWatcher
}

func (p *paged) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, text)
}

func (p *paged) lists() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, text := range p.asked {
		if strings.HasPrefix(text, "list") {
			out = append(out, text)
		}
	}
	return out
}

func newPaged(env *commandtest.Env) *paged {
	p := &paged{}
	env.Clusters.PrependReactor("list", "clusters", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		p.note(fmt.Sprintf("list %d from %q", options.Limit, options.Continue))
		page, first, last := &v1beta1.ClusterList{}, 0, 500
		page.ResourceVersion = "7"
		switch options.Continue {
		case "":
			page.Continue = "a"
		case "a":
			first, last, page.Continue = 500, 1000, "b"
		default:
			first, last = 1000, 1001
		}
		for i := first; i < last; i++ {
			page.Items = append(page.Items, *cluster(fmt.Sprintf("c%04d", i), condition("Available", "True", "Probed", "")))
		}
		return true, page, nil
	})
	env.Clusters.PrependWatchReactor("clusters", func(action clienttesting.Action) (bool, watch.Interface, error) {
		p.note("watch " + action.(clienttesting.WatchActionImpl).ListOptions.ResourceVersion)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.watching = watch.NewRaceFreeFake()
		return true, p.watching, nil
	})
	return p
}

// send sends an event to the newest watch. One that ends meanwhile does not take it.
func (p *paged) send(event watch.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watching != nil {
		p.watching.Action(event.Type, event.Object)
	}
}

var threePages = []string{`list 500 from ""`, `list 500 from "a"`, `list 500 from "b"`}

// TestPages asks for a fleet by pages, each once.
func TestPages(t *testing.T) {
	for name, args := range map[string][]string{"status": nil, "clusters": {"--by", "region"}} {
		env := commandtest.New(t)
		p, cmd := newPaged(env), New(env.Env)
		if name == "clusters" {
			cmd = NewClusters(env.Env)
		}
		env.Run(t, cmd, args...)
		if got := p.lists(); !slices.Equal(got, threePages) {
			t.Errorf("%s asks %q", name, got)
		}
	}
}

// TestFollowedByEvents follows a fleet: it is listed once, and again only when events were lost.
func TestFollowedByEvents(t *testing.T) {
	env := commandtest.New(t)
	p, out := newPaged(env), &lockedBuffer{}
	env.Out = out
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&shower{env: env.Env, watch: true}).follow(ctx) }()
	until := func(what string, event *watch.Event, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(100 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("not %s, but %q", what, out)
			}
			if event != nil {
				p.send(*event)
			}
		}
	}
	until("all of them", nil, func() bool { return strings.Contains(out.String(), "Clusters: 1001, 1001 available") })
	for i, step := range []struct {
		event watch.Event
		text  string
	}{
		{watch.Event{Type: watch.Modified, Object: cluster("c0003", condition("Available", "False", "Refused", ""))}, "Clusters: 1001, 1000 available, 1 not"},
		{watch.Event{Type: watch.Added, Object: cluster("d", condition("Available", "True", "Probed", ""))}, "Clusters: 1002, 1001 available, 1 not"},
		{watch.Event{Type: watch.Deleted, Object: cluster("d")}, "Clusters: 1001, 1000 available, 1 not"},
	} {
		step.event.Object.(*v1beta1.Cluster).ResourceVersion = fmt.Sprint(8 + i)
		before := strings.Count(out.String(), step.text)
		until(step.text, &step.event, func() bool { return strings.Count(out.String(), step.text) > before })
	}
	if got := p.lists(); !slices.Equal(got, threePages) {
		t.Errorf("it was listed again: %q", got)
	}
	expired := apierrors.NewResourceExpired("too old").Status()
	until("listed again", &watch.Event{Type: watch.Error, Object: &expired}, func() bool { return len(p.lists()) >= 2*len(threePages) })
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestUnprobed has the controller of a registry dead: what clusters said last is not shown for
// what is true now.
func TestUnprobed(t *testing.T) {
	dead := fleet(set(condition("Ready", "False", "LeaderLost", "")), func(creg *operatorv1alpha1.ClusterRegistry) {
		creg.Spec.Controllers = &operatorv1alpha1.Controllers{Health: &operatorv1alpha1.HealthController{}}
		creg.Status.Conditions = append(creg.Status.Conditions, condition("ControllerReady", "False", "LeaderLost", "no replica has renewed the Lease since then"))
	})
	clusters := []runtime.Object{cluster("east", condition("Available", "True", "Available", "")), cluster("west", condition("Available", "False", "TimedOut", "")), cluster("new"),
		cluster("swapped", condition("Available", "False", "IdentityMismatch", ""), condition("IdentityVerified", "False", "Other", "another one"))}
	env := commandtest.New(t, clusters...).WithObjects(t, dead)
	if _, code := env.Run(t, New(env.Env)); code != 4 {
		t.Errorf("exit code %d", code)
	}
	shown := env.Stdout.String()
	for _, text := range []string{"Clusters: 4, 0 available, 0 not available, 3 unknown, 1 that no one reports of", "nothing probes its clusters", "swapped   identity differs"} {
		if !strings.Contains(shown, text) {
			t.Errorf("%q is missing in\n%s", text, shown)
		}
	}
	if strings.Contains(shown, "west") {
		t.Errorf("what is out of date is shown:\n%s", shown)
	}
	env = commandtest.New(t, clusters...).WithObjects(t, dead)
	if _, code := env.Run(t, NewClusters(env.Env), "--by", "region"); code != 0 || !strings.Contains(env.Stdout.String(), "unknown (LeaderLost)") {
		t.Errorf("clusters exits with %d and shows\n%s", code, env.Stdout)
	}
}
