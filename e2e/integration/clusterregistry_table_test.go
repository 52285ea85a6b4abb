package integration

import (
	"encoding/base64"
	"encoding/pem"
)

// wrong are faults of a registry, each a text of fleet with what stands in its
// place, the field that the host refuses, and what it says of it.
var wrong = []struct{ old, new, at, says string }{
	{"name: fleet", "name: 1fleet", "is invalid", "metadata.name becomes a part of Service names and certificates: use at most 40 lowercase letters, digits and dashes"},
	{"name: fleet", "name: fleet.eu", "is invalid", "metadata.name becomes a part of Service names"},
	{"name: fleet", "name: a23456789-123456789-123456789-123456789-1", "is invalid", "metadata.name becomes a part of Service names"},
	{"v0.1.0", "v99.0.0", "spec.version", `Unsupported value: "v99.0.0": supported values: "v0.1.0"`},
	{"version: v0.1.0", "paused: false", "spec.version", "Required value"},
	{"mode: Independent", "deletionPolicy: Delete", "spec.mode", "Required value"},
	{"Independent", "independent", "spec.mode", `Unsupported value: "independent": supported values: "Aggregated", "Independent"`},
	{"paused: false", "deletionPolicy: Snapshot", "spec.deletionPolicy", `Unsupported value: "Snapshot": supported values: "Retain", "Delete"`},

	{"paused: false", "images: {repository: 'https://registry.example'}", "spec.images.repository", "write a registry's host and a path without scheme, tag and final slash"},
	{"paused: false", "images: {repository: registry.example/}", "spec.images.repository", "without scheme, tag and final slash"},
	{"paused: false", "images: {repository: 'registry.example/registry:v1'}", "spec.images.repository", "without scheme, tag and final slash"},
	{"paused: false", "images: {pullPolicy: Sometimes}", "spec.images.pullPolicy", `Unsupported value: "Sometimes"`},
	{"paused: false", "images: {pullSecrets: [{name: ''}]}", "spec.images.pullSecrets[0].name", "should be at least 1 chars long"},

	{"server: {}", "server: {replicas: 0}", "spec.server.replicas", "spec.server.replicas in body should be greater than or equal to 1"},
	{"server: {}", "server: {replicas: 17}", "spec.server.replicas", "less than or equal to 16"},
	{"server: {}", "server: {resources: {requests: {cpu: 0}}}", "spec.server.resources.requests", "each request is a quantity above zero, such as cpu: 100m or memory: 128Mi"},
	{"server: {}", "server: {resources: {limits: {memory: -1Gi}}}", "spec.server.resources.limits", "each limit is a quantity above zero"},
	{"server: {}", "server: {resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}", "spec.server.resources", "a request is greater than its limit: raise the limit or lower the request"},
	{"server: {}", "server: {resources: {requests: {memory: much}}}", "spec.server.resources.requests", "each request is a quantity above zero"},
	{"server: {}", "server: {extraArgs: {etcd-servers: 'http://elsewhere'}}", "spec.server.extraArgs", "only these flags can be set, written without dashes: v, vmodule, max-requests-inflight"},
	{"server: {}", "server: {extraArgs: {--v: '4'}}", "spec.server.extraArgs", "written without dashes"},
	{"server: {}", "server: {extraArgs: {v: high}}", "spec.server.extraArgs", "are whole numbers, in quotes"},
	{"server: {}", "server: {extraArgs: {v: ''}}", "spec.server.extraArgs.v", "should be at least 1 chars long"},
	{"server: {}", "server: {extraArgs: {min-request-timeout: 30m}}", "spec.server.extraArgs", "min-request-timeout (seconds) are whole numbers"},
	{"server: {}", "server: {extraArgs: {request-timeout: '60'}}", "spec.server.extraArgs", "request-timeout is a duration such as 1m or 90s"},
	{"server: {}", "server: {extraArgs: {vmodule: store}}", "spec.server.extraArgs", "vmodule is a list of file patterns and levels"},
	{"server: {}", "server: {extraArgs: {watch-cache-sizes: many}}", "spec.server.extraArgs", "watch-cache-sizes is a list of resources and sizes"},
	{"server: {}", "server: {service: {annotations: {operator.clusterregistry.io/stage: none}}}", "spec.server.service.annotations", "annotations of operator.clusterregistry.io are the operator's own: leave them out"},
	{"server: {}", "server: {service: {nodePort: 30000}}", "spec.server.service.nodePort", "a Service of type ClusterIP has no nodePort: use type NodePort or LoadBalancer, or remove nodePort"},
	{"server: {}", "server: {service: {type: NodePort, nodePort: 70000}}", "spec.server.service.nodePort", "less than or equal to 65535"},
	{"server: {}", "server: {service: {type: ExternalName}}", "spec.server.service.type", `Unsupported value: "ExternalName"`},
	{"server: {}", "server: {service: {hostnames: ['https://registry.example']}}", "spec.server.service.hostnames[0]", "write a lowercase DNS name or an IP address, without scheme, port and wildcard"},
	{"server: {}", "server: {service: {hostnames: ['*.registry.example']}}", "spec.server.service.hostnames[0]", "without scheme, port and wildcard"},
	{"server: {}", "server: {service: {hostnames: [a.example, a.example]}}", "spec.server.service.hostnames[1]", "Duplicate value"},
	{"server: {}", "server: {authentication: {}}", "spec.server.authentication.configMapRef", "Required value"},
	{"server: {}", "server: {authorization: {webhookSecretRef: {name: ''}}}", "spec.server.authorization.webhookSecretRef.name", "should be at least 1 chars long"},
	{"Independent\n  paused: false\n  server: {}", "Aggregated\n  server: {service: {type: NodePort}}", "spec.server.service", "an Aggregated registry is reached through the API of the host cluster: remove server.service, or use mode Independent"},
	{"Independent\n  paused: false\n  server: {}", "Aggregated\n  server: {authentication: {configMapRef: {name: issuers}}}", "spec.server.authentication", "the host cluster authenticates the users of an Aggregated registry"},
	{"Independent\n  paused: false\n  server: {}", "Aggregated\n  server: {authorization: {webhookSecretRef: {name: webhook}}}", "spec.server.authorization", "the host cluster authorizes the users of an Aggregated registry"},

	{"etcd: {replicas: 3}", "paused: true", "spec.etcd", "Required value"},
	{"etcd: {replicas: 3}", "etcd: {}", "spec.etcd", "say how many members etcd has (replicas: 1, 3 or 5), or name an external etcd"},
	{"replicas: 3", "replicas: 2", "spec.etcd.replicas", "etcd has 1, 3 or 5 members: an even number survives no more failures than one less"},
	{"replicas: 3", "replicas: 0", "spec.etcd.replicas", "etcd has 1, 3 or 5 members"},
	{"replicas: 3", "replicas: 7", "spec.etcd.replicas", "etcd has 1, 3 or 5 members"},
	{"replicas: 3", "replicas: 3, storage: {size: 0}", "spec.etcd.storage.size", "the size of a volume is a quantity of at least 256Mi, such as 8Gi"},
	{"replicas: 3", "replicas: 3, storage: {size: -8Gi}", "spec.etcd.storage.size", "the size of a volume is a quantity of at least 256Mi"},
	{"replicas: 3", "replicas: 3, storage: {size: big}", "spec.etcd.storage.size", "is a quantity of at least 256Mi, such as 8Gi"},
	{"replicas: 3", "replicas: 3, storage: {size: 1}", "spec.etcd.storage.size", "at least 256Mi"},
	{"replicas: 3", "replicas: 3, storage: {size: 255Mi}", "spec.etcd.storage.size", "at least 256Mi"},
	{"replicas: 3", "replicas: 3, resources: {limits: {cpu: '0'}}", "spec.etcd.resources.limits", "each limit is a quantity above zero"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {}", "spec.etcd.maintenanceWindow.schedule", "Required value"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *}", "spec.etcd.maintenanceWindow.duration", "Required value"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *, duration: 1m}", "spec.etcd.maintenanceWindow.duration", "write how long the window is open in hours, minutes or seconds, from 5m to 168h (a week), such as 2h"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *, duration: 8d}", "spec.etcd.maintenanceWindow.duration", "write how long the window is open"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *, duration: 200h}", "spec.etcd.maintenanceWindow.duration", "write how long the window is open"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: '@daily', duration: 1h}", "spec.etcd.maintenanceWindow.schedule", "write five fields with one space between two of them"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 0 2 * * *, duration: 1h}", "spec.etcd.maintenanceWindow.schedule", "write five fields"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 60 2 * * *, duration: 1h}", "spec.etcd.maintenanceWindow.schedule", "write five fields"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: TZ=UTC 0 2 * * *, duration: 1h}", "spec.etcd.maintenanceWindow.schedule", "without a time zone, which is timeZone"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *, duration: 1h, timeZone: Local}", "spec.etcd.maintenanceWindow.timeZone", "write the name of a time zone in the IANA database"},
	{"replicas: 3", "replicas: 3, maintenanceWindow: {schedule: 0 2 * * *, duration: 1h, timeZone: ../UTC}", "spec.etcd.maintenanceWindow.timeZone", "write the name of a time zone"},
	{"replicas: 3", "external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}, maintenanceWindow: {schedule: 0 2 * * *, duration: 1h}", "spec.etcd", "remove external, or all else of etcd"},
	{"replicas: 3", "replicas: 3, external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}", "spec.etcd", "the operator does not run an external etcd: remove external, or all else of etcd"},
	{"replicas: 3", "priorityClassName: high, external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}", "spec.etcd", "remove external, or all else of etcd"},
	{"replicas: 3", "external: {endpoints: ['http://e:2379'], tlsSecretRef: {name: e}}", "spec.etcd.external.endpoints[0]", "write an https URL with a port and without a path, such as https://etcd-0.example:2379"},
	{"replicas: 3", "external: {endpoints: ['https://e'], tlsSecretRef: {name: e}}", "spec.etcd.external.endpoints[0]", "write an https URL with a port"},
	{"replicas: 3", "external: {endpoints: ['https://user@e:2379'], tlsSecretRef: {name: e}}", "spec.etcd.external.endpoints[0]", "write an https URL with a port"},
	{"replicas: 3", "external: {endpoints: ['https://e:2379/v3'], tlsSecretRef: {name: e}}", "spec.etcd.external.endpoints[0]", "without a path"},
	{"replicas: 3", "external: {endpoints: [], tlsSecretRef: {name: e}}", "spec.etcd.external.endpoints", "should have at least 1 items"},
	{"replicas: 3", "external: {endpoints: ['https://e:2379']}", "spec.etcd.external.tlsSecretRef", "Required value"},

	{"tls: {}", "tls: {issuerRef: {name: corporate}}", "spec.tls", "clients must know whom to trust: add caBundle, the CA certificates of the issuer that issuerRef names"},
	{"tls: {}", "tls: {caBundle: " + encoded("", "") + "}", "spec.tls", "caBundle belongs to issuerRef: add issuerRef, or remove caBundle to use the registry's own CA"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: bm9uZQ==}", "spec.tls.caBundle", "write CA certificates in PEM, base64 encoded in one line"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: /////w==}", "spec.tls.caBundle", "base64 encoded in one line"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: '-----BEGIN CERTIFICATE-----'}", "spec.tls.caBundle", "base64 encoded in one line"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: " + encoded("\n", "PRIVATE KEY") + "}", "spec.tls.caBundle", "there is a private key in it: write certificates only"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: " + encoded("\nx", "RSA PRIVATE KEY") + "}", "spec.tls.caBundle", "there is a private key in it"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: " + encoded("\nxy", "EC PRIVATE KEY") + "}", "spec.tls.caBundle", "there is a private key in it"},
	{"tls: {}", "tls: {duration: 90d}", "spec.tls.duration", "write how long a certificate is valid in hours, minutes or seconds, from 1h to 8760h (a year), such as 2160h"},
	{"tls: {}", "tls: {duration: 10m}", "spec.tls.duration", "from 1h to 8760h (a year)"},
	{"tls: {}", "tls: {duration: 9000h}", "spec.tls.duration", "from 1h to 8760h (a year)"},
	{"tls: {}", "tls: {renewBefore: 1m}", "spec.tls.renewBefore", "write how long before its end a certificate is renewed in hours, minutes or seconds, at least 5m, such as 720h"},
	{"tls: {}", "tls: {renewBefore: 2160h}", "spec.tls.renewBefore", "renewBefore must be less than duration: a certificate is renewed while it is valid"},

	{"tls: {}", "tls: {rotation: {etcd: 0}}", "spec.tls.rotation.etcd", "greater than or equal to 1"},
	{"tls: {}", "tls: {rotation: {client: 10000}}", "spec.tls.rotation.client", "less than or equal to 9999"},
	{"tls: {}", "tls: {rotation: {serving: 2, drop: {serving: 2}}}", "spec.tls.rotation.drop.serving", "drop.serving must be less than serving: raise serving first"},
	{"tls: {}", "tls: {rotation: {drop: {client: 1}}}", "spec.tls.rotation.drop.client", "drop.client must be less than client: raise client first"},
	{"tls: {}", "tls: {rotation: {serving: 2}, issuerRef: {name: corporate}, caBundle: " + encoded("", "") + "}", "spec.tls.rotation.serving", "the issuer in issuerRef signs the servers' certificate, and has no CA of the registry's to rotate"},
	{"etcd: {replicas: 3}\n  tls: {}", "etcd: {external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}}\n  tls: {rotation: {etcd: 2}}", "spec.tls.rotation.etcd", "the operator does not manage the CA of an external etcd"},
	{"Independent\n  paused: false\n  server: {}\n  etcd: {replicas: 3}\n  tls: {}", "Aggregated\n  etcd: {replicas: 3}\n  tls: {rotation: {client: 2}}", "spec.tls.rotation.client", "an Aggregated registry has no CA of clients"},
	{"Independent\n  paused: false\n  server: {}\n  etcd: {replicas: 3}\n  tls: {}", "Aggregated\n  etcd: {replicas: 3}\n  tls: {rotation: {serving: 2, drop: {serving: 1}}}", "spec.tls.rotation.drop", "no client of an Aggregated registry has a copy of a CA"},

	{"tls: {}", "controllers: {}", "spec.controllers", "controllers turns no function on: add health or registerHost, such as health: {}, or remove controllers"},
	{"tls: {}", "controllers: {resources: {requests: {cpu: 1}}}", "spec.controllers", "controllers turns no function on"},
	{"tls: {}", "controllers: {health: {periodSeconds: 4}}", "spec.controllers.health.periodSeconds", "greater than or equal to 5"},
	{"tls: {}", "controllers: {health: {periodSeconds: 3601}}", "spec.controllers.health.periodSeconds", "less than or equal to 3600"},
	{"tls: {}", "controllers: {health: {clientAddress: '10.1.2.3:443'}}", "spec.controllers.health.clientAddress", "write an IP address, without a port, such as 10.1.2.3"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: [10.96.0.0]}}", "spec.controllers.health.allowedCIDRs[0]", "write a range of IP addresses as address/length, such as 10.96.0.0/12"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: [10.0.0.0/8, 10.96.0.0/33]}}", "spec.controllers.health.allowedCIDRs[1]", "write a range of IP addresses as address/length"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: ['::ffff:10.96.0.0/120']}}", "spec.controllers.health.allowedCIDRs[0]", "write a range of IP addresses as address/length"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: [10.96.0.1/12]}}", "spec.controllers.health.allowedCIDRs[0]", "the address has bits set beyond the length of the range: write its first address, such as 10.96.0.0/12"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: ['fd00::1/64']}}", "spec.controllers.health.allowedCIDRs[0]", "the address has bits set beyond the length of the range"},
	{"tls: {}", "controllers: {health: {allowedCIDRs: [10.0.0.0/8, 10.0.0.0/8]}}", "spec.controllers.health.allowedCIDRs[1]", "Duplicate value"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['proxy.example:3128']}}", "spec.controllers.health.allowedProxies[0]", "write the URL of an HTTP proxy, without user, path and query, such as http://proxy.example.com:3128"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://a', 'socks5://proxy.example:1080']}}", "spec.controllers.health.allowedProxies[1]", "write the URL of an HTTP proxy"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://u:p@proxy.example']}}", "spec.controllers.health.allowedProxies[0]", "without user, path and query"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://proxy.example/a']}}", "spec.controllers.health.allowedProxies[0]", "without user, path and query"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://a,http://b']}}", "spec.controllers.health.allowedProxies[0]", "write the URL of an HTTP proxy"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://[:::1]:3128']}}", "spec.controllers.health.allowedProxies[0]", "write the URL of an HTTP proxy"},
	{"tls: {}", "controllers: {health: {allowedProxies: ['http://a', 'http://a']}}", "spec.controllers.health.allowedProxies[1]", "Duplicate value"},
	{"tls: {}", "controllers: {registerHost: {}}", "spec.controllers.registerHost.name", "Required value"},
	{"tls: {}", "controllers: {registerHost: {name: Host}}", "spec.controllers.registerHost.name", "write a DNS label: lowercase letters, digits and dashes"},
	{"tls: {}", "controllers: {registerHost: {name: a.b}}", "spec.controllers.registerHost.name", "write a DNS label"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'http://api.example'}}", "spec.controllers.registerHost.url", "write an https URL without user, query and fragment, such as https://api.example.com:6443"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'https://u:p@api.example'}}", "spec.controllers.registerHost.url", "without user, query and fragment"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'https://api.example/?a=b'}}", "spec.controllers.registerHost.url", "without user, query and fragment"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'https://api.example/#a'}}", "spec.controllers.registerHost.url", "without user, query and fragment"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: api.example}}", "spec.controllers.registerHost.url", "write an https URL"},
	{"tls: {}", "controllers: {registerHost: {name: a, caBundle: " + encoded("", "") + "}}", "spec.controllers.registerHost", "caBundle belongs to url: add url, or remove caBundle"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'https://api.example', caBundle: bm9uZQ==}}", "spec.controllers.registerHost.caBundle", "write CA certificates in PEM, base64 encoded in one line"},
	{"tls: {}", "controllers: {registerHost: {name: a, url: 'https://api.example', caBundle: " + encoded("\n", "PRIVATE KEY") + "}}", "spec.controllers.registerHost.caBundle", "there is a private key in it: write certificates only"},
	{"tls: {}", "controllers: {health: {}, resources: {limits: {cpu: 0}}}", "spec.controllers.resources.limits", "each limit is a quantity above zero"},
}

// encoded returns what has the form of a certificate, base64 encoded, followed
// by a text and, unless its type is empty, by another PEM block.
func encoded(text, blockType string) string {
	content := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("none")})
	content = append(content, text...)
	if blockType != "" {
		content = append(content, pem.EncodeToMemory(&pem.Block{Type: blockType, Bytes: []byte("none")})...)
	}
	return base64.StdEncoding.EncodeToString(content)
}

// right are registries that look unusual and are not wrong.
var right = []struct{ old, new string }{
	{"paused: false", "paused: true"},
	{"name: fleet", "name: a23456789-123456789-123456789-123456789"},
	{"Independent", "Aggregated"},
	{"paused: false", "images: {repository: 'localhost:5000/a/b-c', pullSecrets: [{name: a}, {name: b}]}"},
	{"server: {}", "server: {resources: {requests: {cpu: 1}, limits: {cpu: 1000m}}}"},
	{"server: {}", "server: {extraArgs: {v: '4', vmodule: 'store=4,retry*=2', max-requests-inflight: '800', max-mutating-requests-inflight: '400', request-timeout: 1m30s, min-request-timeout: '600', watch-cache-sizes: 'clusters.clusterregistry.k8s.io#1000'}}"},
	{"server: {}", "server: {service: {type: LoadBalancer, nodePort: 30001, annotations: {example.com/internal: 'true'}, hostnames: [registry.example, 192.0.2.1, '2001:db8::1']}}"},
	{"server: {}", "server: {nodeSelector: {a: b}, tolerations: [{operator: Exists}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}], priorityClassName: high}"},
	{"replicas: 3", "replicas: 5, storage: {size: 10737418240, storageClassName: fast}"},
	{"replicas: 3", "replicas: 1, maintenanceWindow: {schedule: '*/30 0-5,22 1-7 jan-Mar SUN,mon-fri/2', duration: 90m, timeZone: America/Argentina/Buenos_Aires}"},
	{"replicas: 3", "replicas: 1, maintenanceWindow: {schedule: 59 23 31 12 6, duration: 168h, timeZone: Etc/GMT+12}"},
	{"replicas: 3", "external: {endpoints: ['https://[2001:db8::1]:2379', 'https://192.0.2.1:2379/'], tlsSecretRef: {name: e}}"},
	{"tls: {}", "tls: {issuerRef: {name: corporate, kind: VaultIssuer, group: issuers.example}, caBundle: " + encoded("", "") + "}"},
	{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: " + encoded("# Főtanúsítvány???>>>\n", "CERTIFICATE") + "}"},
	{"tls: {}", "tls: {duration: 1h}"},
}

// changes are updates of a registry, as texts of fleet with what stands in
// their place before and after; where nothing is said, they are allowed.
var changes = []struct {
	from, to []string
	at, says string
}{
	{nil, []string{"Independent", "Aggregated"}, "spec.mode", "the mode of a registry can't be changed: create another registry and copy the clusters"},
	{nil, []string{"replicas: 3", "replicas: 5"}, "", ""},
	{nil, []string{"replicas: 3", "replicas: 3, replaceAfter: 0s"}, "", ""},
	{nil, []string{"replicas: 3", "replicas: 3, replaceAfter: 25h"}, "spec.etcd.replaceAfter", "write how long a lost member is waited for in hours, minutes or seconds, at most 24h"},
	{nil, []string{"replicas: 3", "external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}"}, "spec.etcd", "a registry can't be moved between an etcd of its own and an external one"},
	{[]string{"replicas: 3", "external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}"}, nil, "spec.etcd", "a registry can't be moved between an etcd of its own and an external one"},
	{[]string{"replicas: 3", "replicas: 3, storage: {size: 16Gi}"}, []string{"replicas: 3", "replicas: 3, storage: {size: 12Gi}"}, "spec.etcd.storage", "the size of etcd's volumes can grow but not shrink: the least is what the volumes have (status.etcd.volumeSize)"},
	{nil, []string{"replicas: 3", "replicas: 3, storage: {size: 4Gi}"}, "spec.etcd.storage", "can grow but not shrink"},
	{[]string{"replicas: 3", "replicas: 3, storage: {size: 16Gi}"}, nil, "spec.etcd.storage", "can grow but not shrink"},
	{[]string{"replicas: 3", "replicas: 3, storage: {storageClassName: slow}"}, []string{"replicas: 3", "replicas: 3, storage: {storageClassName: fast}"}, "spec.etcd.storage", "the storage class of etcd's volumes can't be changed"},
	{[]string{"replicas: 3", "replicas: 3, storage: {storageClassName: slow}"}, nil, "spec.etcd.storage", "the storage class of etcd's volumes can't be changed"},
	{[]string{"tls: {}", "tls: {rotation: {etcd: 3}}"}, []string{"tls: {}", "tls: {rotation: {etcd: 2}}"}, "spec.tls.rotation", "rotation.etcd can't be lowered, and 1 is what it is without a number"},
	{[]string{"tls: {}", "tls: {rotation: {etcd: 2}}"}, nil, "spec.tls.rotation", "rotation.etcd can't be lowered"},
	{[]string{"tls: {}", "tls: {rotation: {client: 2}}"}, []string{"tls: {}", "tls: {rotation: {serving: 2}}"}, "spec.tls.rotation", "rotation.client can't be lowered"},
	{[]string{"tls: {}", "tls: {rotation: {serving: 2}}"}, []string{"tls: {}", "tls: {rotation: {client: 2}}"}, "spec.tls.rotation", "rotation.serving can't be lowered"},
	{nil, []string{"v0.1.0", "v99.0.0"}, "spec.version", "Unsupported value"},

	{nil, []string{"replicas: 3", "replicas: 3, storage: {size: 8192Mi}"}, "", ""},
	{nil, []string{"replicas: 3", "replicas: 3, storage: {size: 16Gi}"}, "", ""},
	{[]string{"replicas: 3", "replicas: 3, storage: {size: 4Gi}"}, nil, "", ""},
	{nil, []string{"server: {}", "server: {replicas: 4, service: {type: LoadBalancer}}"}, "", ""},
	{[]string{"replicas: 3", "external: {endpoints: ['https://e:2379'], tlsSecretRef: {name: e}}"}, []string{"replicas: 3", "external: {endpoints: ['https://f:2379'], tlsSecretRef: {name: f}}"}, "", ""},
	{nil, []string{"paused: false", "paused: true\n  deletionPolicy: Delete"}, "", ""},
	{[]string{"tls: {}", "tls: {rotation: {etcd: 1, serving: 2, client: 3}}"}, []string{"tls: {}", "tls: {rotation: {etcd: 2, serving: 2, client: 4, drop: {serving: 1, client: 3}}}"}, "", ""},
	{[]string{"tls: {}", "tls: {rotation: {etcd: 1, serving: 1, client: 1}}"}, nil, "", ""},
	{[]string{"tls: {}", "tls: {rotation: {client: 4, drop: {client: 3}}}"}, []string{"tls: {}", "tls: {rotation: {client: 4}}"}, "", ""},
	{[]string{"tls: {}", "tls: {rotation: {serving: 2}}"}, []string{"tls: {}", "tls: {issuerRef: {name: corporate}, caBundle: " + encoded("", "") + "}"}, "", ""},
}
