package reviews

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
)

func whoAmI(_ context.Context, who user.Info, review *authenticationv1.SelfSubjectReview) error {
	review.Status = authenticationv1.SelfSubjectReviewStatus{UserInfo: infoOf(who)}
	return nil
}

func infoOf(who user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups()}
	if extra := who.GetExtra(); len(extra) > 0 {
		info.Extra = map[string]authenticationv1.ExtraValue{}
		for key, values := range extra {
			info.Extra[key] = values
		}
	}
	return info
}

// whose tells whose a token is, as if it had come with a request that has nothing else.
// Audiences, if the review names any, restrict which tokens count; without them it is a
// token for the registry.
func whose(ctx context.Context, bearers authenticator.Request, review *authenticationv1.TokenReview) error {
	token := review.Spec.Token
	if token == "" || strings.ContainsAny(token, " \t\r\n") {
		return apierrors.NewBadRequest("spec.token is required, and has no spaces: name the token to review")
	}
	// The answer goes back to who asked, and may be logged.
	review.Spec.Token = ""
	request := (&http.Request{URL: &url.URL{Path: "/"}, Header: http.Header{"Authorization": {"Bearer " + token}}}).WithContext(ctx)
	response, known, err := bearers.AuthenticateRequest(request)
	review.Status = authenticationv1.TokenReviewStatus{}
	switch {
	case err != nil:
		review.Status.Error = err.Error() // that is the answer
		return nil                        //nolint:nilerr // to the review, which is well-formed
	case !known:
		review.Status.Error = "no issuer of the registry knows the token"
		return nil
	}
	if asked := review.Spec.Audiences; len(asked) > 0 {
		review.Status.Audiences = slices.DeleteFunc(audiencesOf(token), func(audience string) bool { return !slices.Contains(asked, audience) })
		if len(review.Status.Audiences) == 0 {
			review.Status.Error = fmt.Sprintf("the token is for none of the audiences %q", asked)
			return nil
		}
	}
	review.Status.Authenticated, review.Status.User = true, infoOf(response.User)
	return nil
}

// audiencesOf returns the claim "aud" of a JSON Web Token whose signature was verified, one
// or several (RFC 7519, section 4.1.3), and none of anything else.
func audiencesOf(token string) []string {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return nil
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return nil
	}
	// Package json takes other cases of a key for the same one, and a token may have both.
	var claims map[string]json.RawMessage
	if json.Unmarshal(payload, &claims) != nil {
		return nil
	}
	var one string
	if json.Unmarshal(claims["aud"], &one) == nil && one != "" {
		return []string{one}
	}
	var several []string
	if json.Unmarshal(claims["aud"], &several) != nil {
		return nil
	}
	return slices.DeleteFunc(several, func(audience string) bool { return audience == "" })
}
