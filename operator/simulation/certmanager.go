package simulation

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"net"
	"slices"
	"time"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var certificateKind = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}

// parsed returns addresses as a certificate has them.
func parsed(addresses []string) (out []net.IP) {
	for _, address := range addresses {
		out = append(out, net.ParseIP(address))
	}
	return out
}

// decoded returns a value of a Secret.
func decoded(secret *stored, key string) []byte {
	text, _, _ := unstructured.NestedString(secret.Object, "data", key)
	content, err := base64.StdEncoding.DecodeString(text)
	must(err)
	return content
}

// issue has cert-manager issue what is asked for.
func (w *world) issue() {
	if w.certManagerAway {
		return
	}
	for _, certificate := range w.host.list(certificateKind, "") {
		conditions := certificate.items("status", "conditions")
		asked := slices.ContainsFunc(conditions, func(c any) bool {
			condition := c.(map[string]any)
			return condition["type"] == "Issuing" && condition["status"] == "True"
		})
		known := slices.ContainsFunc(conditions, func(c any) bool {
			condition := c.(map[string]any)
			seen, _ := condition["observedGeneration"].(int64)
			return condition["type"] == "Ready" && seen == certificate.GetGeneration()
		})
		name, _, _ := unstructured.NestedString(certificate.Object, "spec", "secretName")
		secret := w.host.objects[id{secretKind, certificate.namespace, name}]
		if (secret == nil || asked || !known) && w.chance(70) {
			w.sign(certificate, secret, name)
		}
	}
}

// sign issues a certificate, if its issuer has a CA. A CA keeps its key.
func (w *world) sign(certificate, secret *stored, name string) {
	issuer, _, _ := unstructured.NestedString(certificate.Object, "spec", "issuerRef", "name")
	of := w.host.objects[id{schema.GroupKind{Group: "cert-manager.io", Kind: "Issuer"}, certificate.namespace, issuer}]
	if of == nil {
		return
	}
	isCA, _, _ := unstructured.NestedBool(certificate.Object, "spec", "isCA")
	signer, signs, _ := unstructured.NestedString(of.Object, "spec", "ca", "secretName")
	if signs && w.secret(signer, "tls.crt") == nil {
		return
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	if isCA && secret != nil {
		block, _ := pem.Decode(decoded(secret, "tls.key"))
		key, err = x509.ParseECPrivateKey(block.Bytes)
		must(err)
	}
	common, _, _ := unstructured.NestedString(certificate.Object, "spec", "commonName")
	names, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "dnsNames")
	addresses, _, _ := unstructured.NestedStringSlice(certificate.Object, "spec", "ipAddresses")
	w.host.uids++
	duration, renewal := 90*24*time.Hour, 60*24*time.Hour
	if isCA {
		duration, renewal = 10*365*24*time.Hour, 9*365*24*time.Hour
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(int64(w.host.uids)), Subject: pkix.Name{CommonName: common}, DNSNames: names, NotBefore: time.Now(), NotAfter: time.Now().Add(duration),
		IPAddresses: parsed(addresses), IsCA: isCA, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	parent, parentKey := template, key
	if signs {
		block, _ := pem.Decode(w.secret(signer, "tls.crt"))
		parent, err = x509.ParseCertificate(block.Bytes)
		must(err)
		block, _ = pem.Decode(w.secret(signer, "tls.key"))
		parentKey, err = x509.ParseECPrivateKey(block.Bytes)
		must(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	must(err)
	private, err := x509.MarshalECPrivateKey(key)
	must(err)
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	authority := signed
	if signs {
		authority = w.secret(signer, "tls.crt")
	}
	encode := base64.StdEncoding.EncodeToString
	labels, _, _ := unstructured.NestedMap(certificate.Object, "spec", "secretTemplate", "labels")
	data := map[string]any{"tls.crt": encode(signed), "tls.key": encode(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})), "ca.crt": encode(authority)}
	if secret == nil {
		w.make("v1", "Secret", certificate.namespace, name, map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]any{certmanagerv1.IssuerNameAnnotationKey: issuer}}, "data": data})
	} else {
		tree := secret.DeepCopy()
		tree.Object["data"] = data
		must(unstructured.SetNestedField(tree.Object, issuer, "metadata", "annotations", certmanagerv1.IssuerNameAnnotationKey))
		w.host.store(secret, tree)
	}
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	w.note("cert-manager issues %s", name)
	w.status(w.host.objects[certificate.id], map[string]any{"notBefore": at(template.NotBefore), "notAfter": at(template.NotAfter), "renewalTime": at(time.Now().Add(renewal)), "revision": int64(w.host.uids),
		"conditions": []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": "", "observedGeneration": certificate.GetGeneration(), "lastTransitionTime": at(time.Now())}}})
}
