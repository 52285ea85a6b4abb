package project

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// form is what GitHub shows to those who open an issue.
type form struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Labels      []string `json:"labels"`
	Body        []struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Attributes struct {
			Label       string `json:"label"`
			Description string `json:"description"`
			Value       string `json:"value"`
			Render      string `json:"render"`
		} `json:"attributes"`
		Validations struct {
			Required bool `json:"required"`
		} `json:"validations"`
	} `json:"body"`
}

const forms = ".github/ISSUE_TEMPLATE"

// TestForms expects what GitHub requires of forms for issues: with less, it shows none.
func TestForms(t *testing.T) {
	entries, err := os.ReadDir(filepath.Join(root, forms))
	if err != nil || len(entries) < 3 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		if entry.Name() == "config.yml" {
			continue
		}
		var is form
		strictly(t, filepath.Join(forms, entry.Name()), &is)
		if len(is.Name) < 4 || is.Description == "" || filepath.Ext(entry.Name()) != ".yaml" {
			t.Errorf("%s has no name or no description, or is no .yaml", entry.Name())
		}
		var ids, labels []string
		asks := false
		for i, element := range is.Body {
			switch element.Type {
			case "markdown":
				if element.Attributes.Value == "" || element.ID != "" {
					t.Errorf("%s: element %d shows nothing, or has an id", entry.Name(), i)
				}
				continue
			case "textarea", "input":
				asks = true
			default:
				t.Errorf("%s: element %d is a %q", entry.Name(), i, element.Type)
			}
			if element.ID == "" || element.Attributes.Label == "" || element.Attributes.Value != "" || element.Attributes.Render != "" && element.Type != "textarea" {
				t.Errorf("%s: element %d (%s) lacks an id or a label, or has what its type has not", entry.Name(), i, element.ID)
			}
			ids, labels = append(ids, element.ID), append(labels, element.Attributes.Label)
		}
		for _, list := range [][]string{ids, labels} {
			if slices.Sort(list); len(slices.Compact(slices.Clone(list))) != len(list) {
				t.Errorf("%s has one of %q twice", entry.Name(), list)
			}
		}
		if !asks {
			t.Errorf("%s asks for nothing", entry.Name())
		}
	}
}

// TestLinksOfForms reads what is offered beside the forms.
func TestLinksOfForms(t *testing.T) {
	const name = forms + "/config.yml"
	var config struct {
		Blank bool `json:"blank_issues_enabled"`
		Links []struct {
			Name  string `json:"name"`
			URL   string `json:"url"`
			About string `json:"about"`
		} `json:"contact_links"`
	}
	strictly(t, name, &config)
	for _, link := range config.Links {
		if link.Name == "" || link.About == "" || !strings.HasPrefix(link.URL, home+"/") {
			t.Errorf("%s has the link %+v", name, link)
		}
	}
	checkAddresses(t, name)
}
