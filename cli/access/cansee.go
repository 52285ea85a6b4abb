package access

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/clusterregistry/operator/cli/command"
	clusterclient "github.com/clusterregistry/operator/client/clientset/versioned/typed/clusterregistry/v1beta1"
)

// table is the form for people, which is the default.
const table = "table"

// seer is one run of can-see.
type seer struct {
	env        *command.Env
	sets       []string
	user       string
	groups     []string
	visibility string
	output     command.Output
	notes      []string
}

// NewCanSee returns the command can-see.
func NewCanSee(env *command.Env) *cobra.Command {
	s := &seer{env: env}
	cmd := &cobra.Command{
		Use:   "can-see [SET...] [--subject USER [--subject-group GROUP]...]",
		Short: "Show which clusters someone sees and changes, and why",
		Long: `Show which clusters and ClusterSets someone sees, which they may change and move, and by which
ClusterRoleBindings: of all sets, or of those that are named. Without --subject it is about yourself.

The API server that authorizes the registry's users is asked for each right (SubjectAccessReview),
because webhooks and other authorizers may decide besides RBAC; the bindings that explain it are
evaluated here, and what they can't explain is noted.

Exits with 4 when someone may see or change clusters by the decision about sets and not by the gate.`,
		Example: `  # Which clusters someone of a team sees
  kubectl registry can-see --subject ann --subject-group team-payments

  # Which sets a pipeline may write to, for a program
  kubectl registry can-see --subject system:serviceaccount:ci:deployer -o json

  # What someone would see if the registry told sets apart
  kubectl registry can-see --subject ann --visibility ClusterSets`,
		Args:              command.Args(cobra.ArbitraryArgs),
		ValidArgsFunction: completeSets(env, 0),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.sets = args
			if err := s.validate(cmd); err != nil {
				return err
			}
			return s.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&s.user, "subject", "", "`user` to ask about; service accounts are system:serviceaccount:NAMESPACE:NAME; default: yourself")
	f.StringArrayVar(&s.groups, "subject-group", nil, "`group` of theirs; may be repeated. system:authenticated and those of service accounts are added")
	f.StringVar(&s.visibility, "visibility", "", "show it as with this visibility, `All|ClusterSets`; default: that of the ClusterRegistry, ClusterSets where it is not known")
	s.output.AddFlag(cmd, table)
	_ = cmd.RegisterFlagCompletionFunc("visibility", cobra.FixedCompletions([]string{visibleAll, visibleSets}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (s *seer) validate(cmd *cobra.Command) error {
	if err := s.output.Validate(table); err != nil {
		return err
	}
	if s.output == table {
		s.output = ""
	}
	switch {
	case s.visibility != "" && s.visibility != visibleAll && s.visibility != visibleSets:
		return command.Usagef("--visibility=%s: use %s or %s", command.Plain(s.visibility), visibleAll, visibleSets)
	case cmd.Flags().Changed("subject") && s.user == "":
		return command.Usagef("--subject= names no one: give the name by which the API server knows the user")
	case s.user == "" && len(s.groups) > 0:
		return command.Usagef("--subject-group needs --subject: a group alone sends no requests; any name will do for its user")
	case slices.Contains(s.groups, ""):
		return command.Usagef("--subject-group= names no group: leave it out")
	}
	for _, set := range s.sets {
		if err := checkSet(set); err != nil {
			return err
		}
	}
	return nil
}

// run asks and shows:
//  1. the sets and clusters of the registry, and its visibility
//  2. who is asked about, and the roles and bindings
//  3. the rights, first those for all clusters, then those of each set
func (s *seer) run(ctx context.Context) error {
	stop := s.env.Progress(ctx, "Asking the registry and the API server that authorizes")
	report, err := s.read(ctx)
	stop()
	if err != nil {
		return err
	}
	if s.output != "" {
		err = s.output.Print(s.env.Out, report)
	} else {
		err = report.print(s.env.Out)
	}
	if err != nil || len(report.Problems) == 0 {
		return err
	}
	if s.output != "" {
		return command.Attentionf("%s", report.Problems[0].Message)
	}
	return command.Shown(report.Problems[0].Message)
}

func (s *seer) read(ctx context.Context) (*Report, error) {
	scene := &scene{members: map[string][]string{}}
	if err := s.readRegistry(ctx, scene); err != nil {
		return nil, err
	}
	var err error
	if scene.visibility, err = readVisibility(ctx, s.env); err != nil {
		return nil, err
	}
	if s.visibility != "" {
		scene.visibility.value, scene.visibility.unknown = s.visibility, ""
	}
	client, err := s.env.Kubernetes()
	if err != nil {
		return nil, err
	}
	if scene.who, err = s.who(ctx, client); err != nil {
		return nil, err
	}
	if scene.judge, err = s.newJudge(ctx, client, scene.who); err != nil {
		return nil, err
	}
	for _, rights := range []func() []Right{scene.first, scene.second} {
		if err := scene.judge.ask(ctx, rights()); err != nil {
			return nil, s.env.Explain("review what "+command.Plain(scene.who.user)+" may do", command.OfRegistry, err)
		}
	}
	report := scene.report()
	report.Notes = append(report.Notes, s.notes...)
	return report, nil
}

func (s *seer) note(format string, args ...any) {
	s.notes = append(s.notes, fmt.Sprintf(format, args...))
}

// readRegistry reads the sets and which clusters are in them. What the caller may not list
// is noted.
func (s *seer) readRegistry(ctx context.Context, scene *scene) error {
	registry, err := s.env.Registry()
	if err != nil {
		return err
	}
	api := registry.ClusterregistryV1beta1()
	list, err := api.Clusters().List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsForbidden(err):
		scene.hidden = true
		s.note("you may not list clusters, so that they are neither named nor counted: ask for list on clusters.clusterregistry.k8s.io")
	case err != nil:
		return s.env.Explain("list the clusters", command.OfRegistry, err)
	default:
		for _, cluster := range list.Items {
			scene.members[cluster.Spec.ClusterSet] = append(scene.members[cluster.Spec.ClusterSet], cluster.Name)
		}
	}
	return s.readSets(ctx, api, scene)
}

func (s *seer) readSets(ctx context.Context, api clusterclient.ClusterregistryV1beta1Interface, scene *scene) error {
	list, err := api.ClusterSets().List(ctx, metav1.ListOptions{})
	scene.sets = slices.Clone(s.sets)
	switch {
	case apierrors.IsForbidden(err) && len(s.sets) > 0:
		s.note("you may not list ClusterSets, so that it was not checked whether those that you name exist")
	case apierrors.IsForbidden(err):
		s.note("you may not list ClusterSets, so that none is shown: name them, or ask for list on clustersets.clusterregistry.k8s.io")
	case err != nil:
		return s.env.Explain("list the sets", command.OfRegistry, err)
	default:
		var known []string
		for _, set := range list.Items {
			known = append(known, set.Name)
			if seen := len(scene.members[set.Name]); !scene.hidden && seen < int(set.Status.Clusters) {
				s.note("you see %d of the %d clusters of %s yourself, and others are not named", seen, set.Status.Clusters, set.Name)
			}
		}
		for _, name := range s.sets {
			if !slices.Contains(known, name) {
				return command.Usagef("the registry has no ClusterSet %s: it has %s", name, cmp.Or(enumerate(known), "none"))
			}
		}
		if len(s.sets) == 0 {
			scene.sets = known
		}
	}
	slices.Sort(scene.sets)
	scene.sets = slices.Compact(scene.sets)
	return nil
}

// who returns who is asked about.
func (s *seer) who(ctx context.Context, client kubernetes.Interface) (who, error) {
	if s.user != "" {
		return whoIs(s.user, s.groups), nil
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return who{}, s.env.Explain("ask who you are", command.OfRegistry, err)
	}
	return whoAmI(review.Status.UserInfo), nil
}

// newJudge returns what decides on rights: reviews, explained by RBAC, as far as the caller
// may have them.
func (s *seer) newJudge(ctx context.Context, client kubernetes.Interface, w who) (*judge, error) {
	out := &judge{allowed: map[Right]bool{}}
	user := command.Plain(w.user)
	policy, err := readPolicy(ctx, client.RbacV1(), w)
	unread, err := s.want(err, "list the ClusterRoles and ClusterRoleBindings", noRoles)
	if err != nil {
		return nil, err
	}
	reviewer := &reviewer{client.AuthorizationV1(), w, s.user == ""}
	_, err = reviewer.review(ctx, gate("get"))
	unreviewed, err := s.want(err, "review what "+user+" may do", noReviews)
	if err != nil {
		return nil, err
	}
	switch {
	case unread != "" && unreviewed != "":
		return nil, fmt.Errorf("what %s sees can't be told: %s, and %s", user, unreviewed, unread)
	case unreviewed != "":
		s.note("what is shown is what RBAC gives, and whether something else decides is not known: %s", unreviewed)
		out.policy = policy
	case unread != "":
		s.note("it is not shown by which bindings: %s", unread)
		out.reviewer = reviewer
	default:
		out.policy, out.reviewer = policy, reviewer
	}
	return out, nil
}

// missing says why something could not be asked: for want of a right, or of a server that
// has it.
type missing struct{ forbidden, unserved string }

var (
	noRoles = missing{
		"you may not list ClusterRoles and ClusterRoleBindings here, which needs list on clusterroles and clusterrolebindings of rbac.authorization.k8s.io",
		"this registry has no ClusterRoles, because a webhook decides in their place",
	}
	noReviews = missing{
		"you may not create SubjectAccessReviews here, which needs create on subjectaccessreviews of authorization.k8s.io",
		"this registry does not answer SubjectAccessReviews",
	}
)

// want returns why something could not be asked where the rest can be shown without it,
// and other errors as they are.
func (s *seer) want(err error, action string, reason missing) (string, error) {
	switch {
	case apierrors.IsForbidden(err):
		return reason.forbidden, nil
	case apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return reason.unserved, nil
	}
	return "", s.env.Explain(action, command.OfRegistry, err)
}
