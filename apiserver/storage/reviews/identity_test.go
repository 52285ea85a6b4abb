package reviews

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/clusterregistry/operator/apiserver/authn"
)

// token returns a token that has a payload.
func token(payload string) string {
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".signature"
}

// known is an issuer that knows the tokens with a prefix.
type known struct{}

func (known) AuthenticateToken(_ context.Context, token string) (*authenticator.Response, bool, error) {
	switch {
	case token == "broken":
		return nil, false, errors.New("the issuer says no")
	case !strings.HasPrefix(token, "e30."):
		return nil, false, nil
	}
	return &authenticator.Response{User: &user.DefaultInfo{Name: "ada", UID: "7", Groups: []string{"dev"}, Extra: map[string][]string{"key": {"value"}}}}, true, nil
}

// TestWhose asks whose tokens are.
func TestWhose(t *testing.T) {
	for _, test := range []struct {
		reason, token    string
		audiences, given []string
		fault            string
	}{
		{reason: "known", token: token(`{"aud":"registry"}`)},
		{reason: "for one audience", token: token(`{"aud":"registry"}`), audiences: []string{"other", "registry"}, given: []string{"registry"}},
		{reason: "for several audiences", token: token(`{"aud":["a","registry","b"]}`), audiences: []string{"b", "a"}, given: []string{"a", "b"}},
		{reason: "for another audience", token: token(`{"aud":["registry"]}`), audiences: []string{"vault"}, fault: `none of the audiences ["vault"]`},
		{reason: "without an audience", token: token(`{}`), audiences: []string{"vault"}, fault: "none of the audiences"},
		{reason: "an empty audience", token: token(`{"aud":""}`), audiences: []string{""}, fault: "none of the audiences"},
		{reason: "audiences of which one is empty", token: token(`{"aud":["","a"]}`), audiences: []string{"", "a"}, given: []string{"a"}},
		{reason: "a claim of another case", token: token(`{"aud":"registry","AUD":"vault"}`), audiences: []string{"vault"}, fault: "none of the audiences"},
		{reason: "an audience of another type", token: token(`{"aud":{"vault":"vault"}}`), audiences: []string{"vault"}, fault: "none of the audiences"},
		{reason: "not a JSON Web Token", token: "e30.x", audiences: []string{"vault"}, fault: "none of the audiences"},
		{reason: "a payload that is none", token: "e30.!.x", audiences: []string{"vault"}, fault: "none of the audiences"},
		{reason: "refused", token: "broken", fault: "the issuer says no"},
		{reason: "unknown", token: "invented", fault: "invalid bearer token"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: test.token, Audiences: test.audiences},
				Status: authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{Username: "forged"}, Audiences: []string{"forged"}}}
			if err := whose(t.Context(), authn.New(nil, known{}), review); err != nil {
				t.Fatal(err)
			}
			status := review.Status
			if status.Authenticated != (test.fault == "") || !strings.Contains(status.Error, test.fault) || (status.Error == "") != (test.fault == "") || !slices.Equal(status.Audiences, test.given) {
				t.Errorf("%+v, want audiences %q and the error %q", status, test.given, test.fault)
			}
			if who := status.User; test.fault == "" && (who.Username != "ada" || who.UID != "7" || !slices.Equal(who.Groups, []string{"dev", "system:authenticated"}) || who.Extra["key"][0] != "value") || test.fault != "" && who.Username != "" {
				t.Errorf("the user is %+v", who)
			}
			if review.Spec.Token != "" {
				t.Error("the answer repeats the token")
			}
		})
	}
	for _, none := range []string{"", token(`{}`) + " and more"} {
		if err := whose(t.Context(), authn.New(nil, known{}), &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: none}}); !apierrors.IsBadRequest(err) {
			t.Errorf("with the token %q: %v", none, err)
		}
	}
}

// TestWhoseWithoutIssuers asks a registry that takes certificates alone.
func TestWhoseWithoutIssuers(t *testing.T) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token(`{}`)}}
	if err := whose(t.Context(), authn.New(nil, nil), review); err != nil || review.Status.Authenticated || review.Status.Error == "" {
		t.Errorf("%+v, %v", review.Status, err)
	}
}

// TestWhoseByNothingElse has a review authenticate by the token alone, whoever asks.
func TestWhoseByNothingElse(t *testing.T) {
	var seen *http.Request
	whole := authenticator.RequestFunc(func(r *http.Request) (*authenticator.Response, bool, error) {
		seen = r
		return nil, false, nil
	})
	if err := whose(t.Context(), whole, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "mine"}}); err != nil {
		t.Fatal(err)
	}
	if seen.TLS != nil || len(seen.Header) != 1 || seen.Header.Get("Authorization") != "Bearer mine" {
		t.Errorf("authenticated by %+v", seen)
	}
}

// subject is an authorizer that keeps whom it is asked about, and denies.
type subject struct{ who user.Info }

func (s *subject) Authorize(_ context.Context, question authorizer.Attributes) (authorizer.Decision, string, error) {
	s.who = question.GetUser()
	return authorizer.DecisionDeny, "as told", nil
}

// TestMay asks about someone else.
func TestMay(t *testing.T) {
	path := &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/metrics"}
	for _, test := range []struct {
		reason string
		spec   authorizationv1.SubjectAccessReviewSpec
		fault  string
	}{
		{reason: "a user", spec: authorizationv1.SubjectAccessReviewSpec{User: "ada", UID: "7", Groups: []string{"dev"}, Extra: map[string]authorizationv1.ExtraValue{"key": {"value"}}, NonResourceAttributes: path}},
		{reason: "groups alone", spec: authorizationv1.SubjectAccessReviewSpec{Groups: []string{"dev"}, NonResourceAttributes: path}},
		{reason: "about nothing", spec: authorizationv1.SubjectAccessReviewSpec{User: "ada"}, fault: "exactly one of resourceAttributes and nonResourceAttributes"},
		{reason: "about no one", spec: authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: path}, fault: "spec needs user, groups or both"},
	} {
		t.Run(test.reason, func(t *testing.T) {
			access, review := &subject{}, &authorizationv1.SubjectAccessReview{Spec: test.spec, Status: authorizationv1.SubjectAccessReviewStatus{Allowed: true}}
			err := may(t.Context(), access, review)
			if test.fault != "" {
				if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), test.fault) || access.who != nil {
					t.Errorf("%v, want %q", err, test.fault)
				}
				return
			}
			if err != nil || review.Status.Allowed || !review.Status.Denied || review.Status.Reason != "as told" {
				t.Errorf("%+v, %v", review.Status, err)
			}
			if who := access.who; who.GetName() != test.spec.User || who.GetUID() != test.spec.UID || !slices.Equal(who.GetGroups(), test.spec.Groups) || len(who.GetExtra()) != len(test.spec.Extra) {
				t.Errorf("asked about %+v", who)
			}
		})
	}
}
