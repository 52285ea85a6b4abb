package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterregistry/operator/cli/command"
	"github.com/clusterregistry/operator/internal/unregistered"
)

// checking bounds the checks before something is printed: the command also works where
// the registry can't be reached.
const checking = 10 * time.Second

// granter is one run of grant.
type granter struct {
	env                      *command.Env
	set                      string
	chosen                   map[string]*bool
	groups, users, accounted []string
}

// NewGrant returns the command grant.
func NewGrant(env *command.Env) *cobra.Command {
	g := &granter{env: env, chosen: map[string]*bool{}}
	cmd := &cobra.Command{
		Use:   "grant SET (--viewer | --editor | --endpoint-editor) (--group GROUP | --user USER | --service-account NAMESPACE:NAME)...",
		Short: "Print the roles that let a team see or change the clusters of a set",
		Long: `Print the ClusterRole and ClusterRoleBindings that let groups, users and service accounts see or
change the clusters of one ClusterSet, for "kubectl apply". Nothing is changed by the command.

It prints the set's own role, and for each subject a binding to it and one to the gate, which is
clusterregistry:viewer, editor or endpoint-editor. They belong where the registry's users are
authorized: in the host cluster of an aggregated registry, in an independent registry itself, which is
the context of the registry in both cases. Names and content are always the same for the same
arguments. Sets are told apart only where the registry has the visibility ClusterSets.`,
		Example: `  # A team that sees the clusters of its set
  kubectl registry grant payments --viewer --group team-payments | kubectl apply -f -

  # A pipeline that enters and moves them, endpoints included
  kubectl registry grant payments --endpoint-editor --service-account ci:deployer | kubectl apply -f -

  # Take from everyone what was given of a set
  kubectl delete clusterrolebindings,clusterroles -l clusterregistry.k8s.io/clusterset=payments`,
		Args:              command.Args(cobra.ExactArgs(1)),
		ValidArgsFunction: completeSets(env, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			g.set = args[0]
			return g.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	g.chosen["viewer"] = f.Bool("viewer", false, "give the right to read the set's clusters")
	g.chosen["editor"] = f.Bool("editor", false, "give the right to create, change and delete the set's clusters, and to move clusters into and out of it")
	g.chosen["endpoint-editor"] = f.Bool("endpoint-editor", false, "as --editor, and with the endpoints and identities that a registry guards")
	f.StringArrayVar(&g.groups, "group", nil, "`group` that gets it; may be repeated")
	f.StringArrayVar(&g.users, "user", nil, "`user` who gets it; may be repeated")
	f.StringArrayVar(&g.accounted, "service-account", nil, "service account, as `namespace:name`, that gets it; may be repeated")
	return cmd
}

func (g *granter) run(ctx context.Context) error {
	if err := checkSet(g.set); err != nil {
		return err
	}
	level, err := g.level()
	if err != nil {
		return err
	}
	subjects, err := g.subjects()
	if err != nil {
		return err
	}
	if g.check(ctx, level); ctx.Err() != nil {
		return command.Refusedf("interrupted: nothing was printed")
	}
	for i, object := range level.objects(g.set, subjects) {
		if i > 0 {
			if _, err := fmt.Fprintln(g.env.Out, "---"); err != nil {
				return err
			}
		}
		if err := command.Output("yaml").Print(g.env.Out, object); err != nil {
			return err
		}
	}
	return nil
}

// checkSet returns an error about the command line for what can't be the name of a set.
func checkSet(set string) error {
	faults := validation.IsDNS1123Label(set)
	switch {
	case set == "":
		return command.Usagef("the name of the set is empty: name one, as \"kubectl get crset\" lists them")
	case strings.ContainsAny(set, "*?[]{}"):
		return command.Usagef("%q is a pattern, and roles know sets by their names only: name one set, as \"kubectl get crset\" lists them", command.Plain(set))
	case len(faults) > 0:
		return command.Usagef("%q is not a valid name of a set: %s", command.Plain(set), strings.Join(faults, "; "))
	}
	return nil
}

// level returns the one that is asked for.
func (g *granter) level() (level, error) {
	var out []level
	for _, level := range levels {
		if *g.chosen[level.name] {
			out = append(out, level)
		}
	}
	if len(out) != 1 {
		return level{}, command.Usagef("%d of --viewer, --editor and --endpoint-editor are set: set the one that is to be given", len(out))
	}
	return out[0], nil
}

// subjects returns who gets it, each once.
func (g *granter) subjects() ([]rbacv1.Subject, error) {
	var out []rbacv1.Subject
	add := func(subject rbacv1.Subject) {
		if !slices.Contains(out, subject) {
			out = append(out, subject)
		}
	}
	for _, named := range []struct {
		flag, kind string
		names      []string
	}{{"group", rbacv1.GroupKind, g.groups}, {"user", rbacv1.UserKind, g.users}} {
		for _, name := range named.names {
			if name == "" {
				return nil, command.Usagef("--%s= names no one: give the name by which the API server knows the %s", named.flag, named.flag)
			}
			add(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: named.kind, Name: name})
		}
	}
	for _, given := range g.accounted {
		namespace, name, _ := strings.Cut(given, ":")
		if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return nil, command.Usagef("--service-account=%s: name it as NAMESPACE:NAME, such as ci:deployer", command.Plain(given))
		}
		add(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name})
	}
	if len(out) == 0 {
		return nil, command.Usagef("it is not said who gets it: use --group, --user or --service-account")
	}
	return out, nil
}

// check warns where what is printed would not do what is expected of it.
func (g *granter) check(ctx context.Context, level level) {
	ctx, cancel := context.WithTimeout(ctx, checking)
	defer cancel()
	defer g.env.Progress(ctx, "Asking the registry for the set")()
	for _, warning := range []string{g.unknownSet(ctx), g.noVisibility(ctx), g.noGate(ctx, level)} {
		if warning != "" {
			fmt.Fprintln(g.env.ErrOut, command.Plain(warning))
		}
	}
}

// unknownSet warns of a set that does not exist.
func (g *granter) unknownSet(ctx context.Context) string {
	registry, err := g.env.Registry()
	if err == nil {
		_, err = registry.ClusterregistryV1beta1().ClusterSets().Get(ctx, g.set, metav1.GetOptions{})
	}
	switch {
	case err == nil:
		return ""
	case apierrors.IsNotFound(err) && !unregistered.Is(err):
		return fmt.Sprintf("warning: the registry of context %s has no ClusterSet %s: what is printed gives its clusters as soon as someone creates it", g.env.Context(), g.set)
	}
	return fmt.Sprintf("note: whether the ClusterSet %s exists was not checked: %s", g.set, g.env.Explain("get the set", command.OfRegistry, err))
}

// noVisibility warns of a registry that does not tell sets apart: the gate alone shows
// everything there.
func (g *granter) noVisibility(ctx context.Context) string {
	found, err := readVisibility(ctx, g.env)
	switch {
	case err != nil:
		return "note: the visibility of the registry was not checked: " + err.Error()
	case found.value == "":
		return "note: the visibility of the registry was not checked: " + found.unknown
	case found.value == visibleAll && found.differs != "":
		return fmt.Sprintf("warning: %s. Whoever gets this sees, and with the gate of an editor changes, the clusters of all sets until then", found.differs)
	case found.value == visibleAll:
		return fmt.Sprintf("warning: the registry %s has the visibility All: whoever gets this sees, and with the gate of an editor changes, the clusters of all sets; set spec.server.authorization.visibility to ClusterSets first", found.registry)
	}
	return ""
}

// noGate warns of a role that does not exist. One that can't be read is taken for there.
func (g *granter) noGate(ctx context.Context, level level) string {
	client, err := g.env.Kubernetes()
	if err != nil {
		return ""
	}
	if _, err := client.RbacV1().ClusterRoles().Get(ctx, level.gate, metav1.GetOptions{}); !apierrors.IsNotFound(err) || unregistered.Is(err) {
		return ""
	}
	return fmt.Sprintf("warning: there is no ClusterRole %s, so the binding to it gives nothing: the operator's manifests bring it to a host cluster, and the servers of an independent registry make it", level.gate)
}

// completeSets completes the names of sets, at most so many of them; 0 is any number.
func completeSets(env *command.Env, most int) command.Completion {
	return func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if most > 0 && len(args) >= most {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		registry, err := env.Registry()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), command.CompletionTimeout)
		defer cancel()
		list, err := registry.ClusterregistryV1beta1().ClusterSets().List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []string
		for _, set := range list.Items {
			if strings.HasPrefix(set.Name, begun) {
				names = append(names, set.Name+"\t"+command.Plain(set.Spec.DisplayName))
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
