package project

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

const (
	root = "../.."
	home = "https://github.com/clusterregistry/operator"
)

// contact is a person, or all maintainers.
type contact struct {
	Name    string `json:"name"`
	Email   string `json:"email"`
	Primary bool   `json:"primary"`
}

// insights are what version 2.2 of Security Insights has of fields that this project fills;
// fields that it does not know are refused.
type insights struct {
	Header struct {
		SchemaVersion string `json:"schema-version"`
		LastUpdated   string `json:"last-updated"`
		LastReviewed  string `json:"last-reviewed"`
		URL           string `json:"url"`
	} `json:"header"`
	Project struct {
		Name           string    `json:"name"`
		Homepage       string    `json:"homepage"`
		Administrators []contact `json:"administrators"`
		Repositories   []struct {
			Name    string `json:"name"`
			URL     string `json:"url"`
			Comment string `json:"comment"`
		} `json:"repositories"`
		Reporting struct {
			Accepted   *bool    `json:"reports-accepted"`
			BugBounty  *bool    `json:"bug-bounty-available"`
			Policy     string   `json:"policy"`
			Comment    string   `json:"comment"`
			InScope    []string `json:"in-scope"`
			OutOfScope []string `json:"out-of-scope"`
		} `json:"vulnerability-reporting"`
		Documentation struct {
			Guide     string `json:"detailed-guide"`
			Quick     string `json:"quickstart-guide"`
			Design    string `json:"design"`
			Conduct   string `json:"code-of-conduct"`
			Releases  string `json:"release-process"`
			Support   string `json:"support-policy"`
			Signature string `json:"signature-verification"`
		} `json:"documentation"`
	} `json:"project"`
	Repository struct {
		URL              string    `json:"url"`
		Status           string    `json:"status"`
		AcceptsChanges   *bool     `json:"accepts-change-request"`
		AcceptsAutomated *bool     `json:"accepts-automated-change-request"`
		NoThirdParty     *bool     `json:"no-third-party-packages"`
		CoreTeam         []contact `json:"core-team"`
		License          struct {
			URL        string `json:"url"`
			Expression string `json:"expression"`
		} `json:"license"`
		Documentation struct {
			Contributing string `json:"contributing-guide"`
			Governance   string `json:"governance"`
			Review       string `json:"review-policy"`
			Security     string `json:"security-policy"`
		} `json:"documentation"`
		Security struct {
			Assessments struct {
				Self struct {
					Comment  string `json:"comment"`
					Evidence string `json:"evidence"`
				} `json:"self"`
			} `json:"assessments"`
		} `json:"security"`
	} `json:"repository"`
}

// read returns a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// strictly reads a YAML file, of which each field must be known.
func strictly(t *testing.T, name string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, name)), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// TestInsights expects what the schema requires, and that it is true.
func TestInsights(t *testing.T) {
	const name = "SECURITY-INSIGHTS.yml"
	var is insights
	strictly(t, name, &is)
	if is.Header.SchemaVersion != "2.2.0" || is.Header.URL != "https://raw.githubusercontent.com/clusterregistry/operator/main/"+name {
		t.Errorf("the header is %+v", is.Header)
	}
	for what, date := range map[string]string{"last-updated": is.Header.LastUpdated, "last-reviewed": is.Header.LastReviewed} {
		if _, err := time.Parse(time.DateOnly, date); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, given := range map[string]*bool{
		"reports-accepted": is.Project.Reporting.Accepted, "bug-bounty-available": is.Project.Reporting.BugBounty,
		"accepts-change-request": is.Repository.AcceptsChanges, "accepts-automated-change-request": is.Repository.AcceptsAutomated,
	} {
		if given == nil {
			t.Errorf("%s is missing", what)
		}
	}
	for what, text := range map[string]string{
		"project.name": is.Project.Name, "license.expression": is.Repository.License.Expression, "assessments.self.comment": is.Repository.Security.Assessments.Self.Comment,
	} {
		if text == "" {
			t.Errorf("%s is missing", what)
		}
	}
	if is.Repository.Status != "active" || is.Repository.URL != home || len(is.Project.Repositories) != 1 || is.Project.Repositories[0].URL != home {
		t.Errorf("the repository is %q and %+v, of status %q", is.Repository.URL, is.Project.Repositories, is.Repository.Status)
	}
	if !strings.Contains(read(t, "LICENSE"), "Apache License") || is.Repository.License.Expression != "Apache-2.0" {
		t.Errorf("the license is %s", is.Repository.License.Expression)
	}
	checkContacts(t, name, is.Project.Administrators)
	checkContacts(t, name, is.Repository.CoreTeam)
	checkAddresses(t, name)
}

// maintainers returns the names and addresses in the table of MAINTAINERS.md.
func maintainers(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([^|]+) \| (\S+@\S+) \|`).FindAllStringSubmatch(read(t, "MAINTAINERS.md"), -1) {
		out[row[1]] = row[2]
	}
	if len(out) == 0 {
		t.Fatal("MAINTAINERS.md has none")
	}
	return out
}

// checkContacts expects maintainers, one of whom is asked first.
func checkContacts(t *testing.T, name string, list []contact) {
	t.Helper()
	known, primary := maintainers(t), 0
	for _, c := range list {
		if known[c.Name] != c.Email || c.Email == "" {
			t.Errorf("%s names %s (%s), who is not in MAINTAINERS.md", name, c.Name, c.Email)
		}
		if c.Primary {
			primary++
		}
	}
	if primary != 1 {
		t.Errorf("%s has %d primary contacts of one list", name, primary)
	}
}

var (
	address = regexp.MustCompile(regexp.QuoteMeta(home) + `/blob/main/([^\s#"]+)(?:#(\S+))?`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\-_ ]`)
)

// checkAddresses expects each page of this repository that a file names to be there, with
// the heading.
func checkAddresses(t *testing.T, name string) {
	t.Helper()
	found := address.FindAllStringSubmatch(read(t, name), -1)
	if len(found) == 0 {
		t.Errorf("%s names no page", name)
	}
	for _, match := range found {
		page, err := os.ReadFile(filepath.Join(root, match[1]))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		there := match[2] == ""
		for line := range strings.Lines(string(page)) {
			if title, is := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); is && line[0] == '#' {
				there = there || strings.ReplaceAll(strings.ToLower(dropped.ReplaceAllString(strings.TrimSpace(title), "")), " ", "-") == match[2]
			}
		}
		if !there {
			t.Errorf("%s names the heading %s of %s, which is not there", name, match[2], match[1])
		}
	}
}

// TestOwners has all that names owners name the same.
func TestOwners(t *testing.T) {
	var hub struct {
		RepositoryID string    `json:"repositoryID"`
		Owners       []contact `json:"owners"`
	}
	strictly(t, "artifacthub-repo.yml", &hub)
	var csv struct {
		Spec struct {
			Maintainers []contact `json:"maintainers"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "manifests/olm/clusterserviceversion.yaml")), &csv); err != nil {
		t.Fatal(err)
	}
	known := maintainers(t)
	for name, list := range map[string][]contact{"artifacthub-repo.yml": hub.Owners, "the description for OLM": csv.Spec.Maintainers} {
		if len(list) == 0 {
			t.Errorf("%s has no owners", name)
		}
		for _, c := range list {
			if known[c.Name] != c.Email {
				t.Errorf("%s names %s (%s), who is not in MAINTAINERS.md", name, c.Name, c.Email)
			}
		}
	}
	for _, address := range known {
		if !strings.Contains(read(t, "CODE_OF_CONDUCT.md"), address) {
			t.Errorf("CODE_OF_CONDUCT.md does not have the address %s", address)
		}
	}
}
