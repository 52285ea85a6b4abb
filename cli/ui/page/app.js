/* Made by "make ui" from src, whose SHA-256 is 9e91b9620dafe1cfc6215cfe9e35f6674295c50aec67b1bf99410d0c5b929831. */
// src/dom.ts
function el(name, classes, attributes = {}, ...children) {
  const element = document.createElement(name);
  if (classes) element.className = classes;
  for (const [key2, value2] of Object.entries(attributes)) {
    if (typeof value2 === "function") element.addEventListener(key2, value2);
    else if (value2 !== void 0 && value2 !== false) element.setAttribute(key2, value2 === true ? "" : String(value2));
  }
  for (const child of children) if (child) element.append(child);
  return element;
}
function theirs(text, classes = "") {
  return el("bdi", classes, { title: text || void 0 }, text || "");
}
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
var numbers = new Intl.NumberFormat("en");
var dates = new Intl.DateTimeFormat("en", { dateStyle: "medium", timeStyle: "long" });
var clocks = new Intl.DateTimeFormat("en", { timeStyle: "medium", hour12: false });
var number = (n) => numbers.format(n);
var units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function span(ms) {
  const seconds = Math.max(0, Math.round(ms / 1e3));
  const i = units.findIndex(([size3]) => seconds >= size3);
  if (i < 0) return "0 s";
  const [size2, unit] = units[i];
  const count = Math.floor(seconds / size2);
  const next = units[i + 1];
  const rest = next ? Math.floor(seconds % size2 / next[0]) : 0;
  return count < 3 && next && rest ? `${count} ${unit} ${rest} ${next[1]}` : `${number(count)} ${unit}`;
}
var ago = (time2, now) => time2 ? span(now - Date.parse(time2)) + " ago" : "";
function until(time2, now) {
  if (!time2) return "";
  const left = Date.parse(time2) - now;
  return left <= 0 ? "expired" : span(left);
}
var exact = (time2) => time2 ? dates.format(Date.parse(time2)) : "";
var clock = (time2) => clocks.format(time2);
function soon(time2, now) {
  if (!time2) return "";
  const days = (Date.parse(time2) - now) / 864e5;
  return days <= 2 ? "bad" : days <= 21 ? "warn" : "";
}
function size(bytes) {
  for (const [limit, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (bytes >= limit) return (bytes / limit).toFixed(bytes / limit < 10 ? 1 : 0) + " " + unit;
  }
  return bytes + " B";
}

// src/model.ts
var healths = { ok: "Available", bad: "Not available", unknown: "Unknown", none: "Not reported" };
var differs = "identity differs";
function health(row, unprobed) {
  switch (row.state) {
    case "":
      return "none";
    case differs:
      return "bad";
    case "True":
      return unprobed ? "unknown" : "ok";
    case "False":
      return unprobed ? "unknown" : "bad";
    default:
      return "unknown";
  }
}
function words(row, health2) {
  return row.state === differs ? "Another cluster" : healths[health2];
}
var most = 24;
var mostGone = 1e3;
var Fleet = class {
  constructor(opened) {
    this.opened = opened;
  }
  opened;
  entries = /* @__PURE__ */ new Map();
  history = /* @__PURE__ */ new Map();
  /** gaps are times in which nothing was known of the fleet. */
  gaps = [];
  /** unprobed says that nothing probes the clusters. */
  unprobed = false;
  /** changes is another number after each change of the entries. */
  changes = 0;
  gone = /* @__PURE__ */ new Set();
  set(row, now, epoch2) {
    const state2 = health(row, this.unprobed);
    const entry = {
      row,
      health: state2,
      epoch: epoch2,
      number: versionNumber(row.version),
      minor: minorOf(row.version),
      expires: row.expires ? Date.parse(row.expires) : Infinity,
      seen: row.seen ? -Date.parse(row.seen) : Infinity,
      text: [row.name, row.display, row.version, row.set, row.region, row.reason, words(row, state2), ...Object.entries(row.labels ?? {}).map(([k, v]) => `${k}=${v}`)].join("\n").toLowerCase()
    };
    this.entries.set(row.name, entry);
    this.changes++;
    this.gone.delete(row.name);
    this.mark(row.name, entry.health, now);
  }
  /** probed says whether the clusters are probed. */
  probed(is, now) {
    if (is !== this.unprobed) return;
    this.unprobed = !is;
    for (const entry of [...this.entries.values()]) this.set(entry.row, now, entry.epoch);
  }
  remove(name, now) {
    if (!this.entries.delete(name)) return;
    this.changes++;
    this.mark(name, "gone", now);
    this.gone.add(name);
    for (const oldest of this.gone) {
      if (this.gone.size <= mostGone) break;
      this.gone.delete(oldest);
      this.history.delete(oldest);
    }
  }
  /** sweep removes what a new connection has not sent. */
  sweep(epoch2, now) {
    for (const [name, entry] of this.entries) if (entry.epoch !== epoch2) this.remove(name, now);
  }
  /** known says whether the fleet is known. */
  known(is, at) {
    const last = this.gaps.at(-1);
    if (is && last && last.to === void 0) last.to = at;
    if (!is && (!last || last.to !== void 0)) this.gaps.push({ from: at });
    if (this.gaps.length > most) this.gaps.shift();
  }
  mark(name, health2, at) {
    const marks = this.history.get(name) ?? [];
    if (marks.at(-1)?.health === health2) return;
    marks.push({ at, health: health2 });
    if (marks.length > most) marks.shift();
    this.history.set(name, marks);
  }
  /** spans are the times since the page was opened with the health that a cluster had in them. */
  spans(name, now) {
    const marks = this.history.get(name) ?? [];
    const out = marks.map((m, i) => ({ from: m.at, to: marks[i + 1]?.at ?? now, health: m.health }));
    for (const gap of this.gaps) {
      const to = gap.to ?? now;
      for (const span2 of out.splice(0)) {
        if (span2.to <= gap.from || span2.from >= to) {
          out.push(span2);
          continue;
        }
        if (span2.from < gap.from) out.push({ ...span2, to: gap.from });
        out.push({ from: Math.max(span2.from, gap.from), to: Math.min(span2.to, to), health: "gap" });
        if (span2.to > to) out.push({ ...span2, from: to });
      }
    }
    return out;
  }
};
var worst = { bad: 0, unknown: 1, none: 2, ok: 3 };
function value(e, by) {
  switch (by) {
    case "name":
      return e.row.name;
    case "health":
      return worst[e.health];
    case "version":
      return e.number;
    case "set":
      return e.row.set || "￿";
    case "region":
      return e.row.region || "￿";
    case "expires":
      return e.expires;
    case "seen":
      return e.seen;
  }
}
var label = (row, key2) => row.labels && Object.hasOwn(row.labels, key2) ? row.labels[key2] : "";
function groupOf(e, by) {
  switch (by) {
    case "set":
      return e.row.set || "";
    case "region":
      return e.row.region || "";
    case "version":
      return e.minor;
    case "health":
      return healths[e.health];
    default:
      return label(e.row, by.replace(/^label:/, ""));
  }
}
function matcher(text) {
  const terms = text.toLowerCase().split(/\s+/).filter((t) => t && t !== "!");
  return (e) => terms.every((t) => t.startsWith("!") ? !e.text.includes(t.slice(1)) : e.text.includes(t));
}
var View = class {
  constructor(fleet2) {
    this.fleet = fleet2;
  }
  fleet;
  order = [];
  labels = [];
  sorted = "";
  changes = -1;
  answer(query2, closed2) {
    this.sort(query2);
    const counts = { ok: 0, bad: 0, unknown: 0, none: 0, all: 0 }, found2 = [];
    const match = matcher(query2.text);
    for (const e of this.order) {
      if (!match(e)) continue;
      counts[e.health]++;
      counts.all++;
      if (!query2.health || e.health === query2.health) found2.push(e);
    }
    return { counts, lines: lines(found2, query2, closed2), labels: this.labels };
  }
  sort({ sort, down }) {
    const wanted2 = sort + down;
    if (this.changes === this.fleet.changes && this.sorted === wanted2) return;
    if (this.changes !== this.fleet.changes) {
      const rest = new Set(this.fleet.entries.values());
      this.order = this.order.filter((e) => rest.delete(e));
      this.order.push(...rest);
      this.labels = labelKeys(this.order);
    }
    const sign = down ? -1 : 1;
    this.order.sort((a, b) => {
      const x = value(a, sort), y = value(b, sort);
      return x < y ? -sign : x > y ? sign : a.row.name < b.row.name ? -1 : 1;
    });
    this.changes = this.fleet.changes;
    this.sorted = wanted2;
  }
};
function lines(found2, query2, closed2) {
  if (!query2.group) return found2.map((entry) => ({ entry }));
  const groups = /* @__PURE__ */ new Map();
  for (const entry of found2) {
    const name = groupOf(entry, query2.group);
    const group2 = groups.get(name);
    if (group2) group2.push(entry);
    else groups.set(name, [entry]);
  }
  const names2 = [...groups.keys()].sort((a, b) => a === "" ? 1 : b === "" ? -1 : order.compare(a, b));
  return names2.flatMap((name) => {
    const members2 = groups.get(name);
    const head = { group: name, total: members2.length, ok: members2.filter((e) => e.health === "ok").length, bad: members2.filter((e) => e.health === "bad").length, closed: closed2.has(name) };
    return head.closed ? [head] : [head, ...members2.map((entry) => ({ entry }))];
  });
}
var order = new Intl.Collator("en", { numeric: true });
function labelKeys(entries) {
  const seen = /* @__PURE__ */ new Map();
  for (const e of entries) for (const key2 in e.row.labels) seen.set(key2, (seen.get(key2) ?? 0) + 1);
  return [...seen].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 20).map(([key2]) => key2);
}
function minorOf(version) {
  return /^v\d+\.\d+/.exec(version ?? "")?.[0] ?? version ?? "";
}
function versionNumber(version) {
  const parts = /^v(\d+)\.(\d+)(?:\.(\d+))?/.exec(version ?? "");
  return parts ? Number(parts[1]) * 1e8 + Number(parts[2]) * 1e4 + Number(parts[3] ?? 0) : Infinity;
}

// src/strip.ts
function strip(fleet2, name, now) {
  const whole = Math.max(1, now - fleet2.opened);
  const place = (at) => (Math.max(0, at - fleet2.opened) / whole * 100).toFixed(2) + "%";
  const spans = fleet2.spans(name, now), text = describe(spans);
  const parts = spans.map((s) => `var(--h-${s.health}) ${place(s.from)} ${place(s.to)}`);
  const element = el("span", "strip", { role: "img", "aria-label": text, title: text });
  if (spans[0] && spans[0].from > fleet2.opened) parts.unshift(`var(--h-gone) 0% ${place(spans[0].from)}`);
  if (parts.length) element.style.backgroundImage = `linear-gradient(90deg, ${parts.join(", ")})`;
  return element;
}
function describe(spans) {
  const texts = spans.slice(-5).map((s) => {
    const words2 = s.health === "gone" ? "not in the registry" : s.health === "gap" ? "not known" : healths[s.health].toLowerCase();
    return `${words2} from ${clock(s.from)}`;
  });
  return texts.join(", ") || "no history";
}

// src/cluster.ts
function section(title2, ...children) {
  return el("section", "", {}, el("h3", "", {}, title2), ...children);
}
function facts(all) {
  const list = el("dl", "facts");
  for (const [name, value2] of all) if (value2) list.append(el("dt", "", {}, name), el("dd", "", {}, typeof value2 === "string" ? theirs(value2) : value2));
  return list;
}
var time = (at, now) => at ? el("time", "", { datetime: at, title: exact(at) }, ago(at, now)) : void 0;
function ends(at, now) {
  if (!at) return void 0;
  const left = until(at, now);
  return el("time", soon(at, now), { datetime: at, title: exact(at) }, left === "expired" ? left : "in " + left);
}
var good = (type, status) => type === "Progressing" ? "none" : status === "True" ? "ok" : status === "False" ? "bad" : "unknown";
function conditions(all, now) {
  if (!all.length) return el("p", "muted", {}, "None is reported.");
  return el("ul", "conditions", {}, ...all.map((c) => el(
    "li",
    "",
    {},
    el("span", "dot " + good(c.type, c.status), { "aria-hidden": "true" }),
    el(
      "div",
      "",
      {},
      el("div", "line", {}, theirs(c.type, "strong"), el("span", "muted", {}, c.status), c.reason && c.reason !== c.type ? theirs(c.reason, "muted") : "", el("span", "muted right", {}, time(c.since, now))),
      c.message ? theirs(c.message, "message") : ""
    )
  )));
}
function cluster(d, fleet2, now) {
  const state2 = health(d, fleet2.unprobed);
  return [
    section(
      "Health",
      el("p", "line", {}, el("span", "dot " + state2, { "aria-hidden": "true" }), el("span", "strong", {}, words(d, state2)), d.reason ? theirs(d.reason, "muted") : "", el("span", "muted right", {}, d.since ? "for " + span(now - Date.parse(d.since)) : "")),
      d.message ? theirs(d.message, "message") : "",
      el("div", "wide", {}, strip(fleet2, d.name, now)),
      el("p", "scale muted", {}, el("span", "", {}, "page opened"), el("span", "", {}, "now"))
    ),
    section("Cluster", facts([
      ["Version", d.version],
      ["Set", d.set],
      ["Region", d.region],
      ["Certificate", ends(d.expires, now)],
      ["Last seen", time(d.seen, now)],
      ["ID", d.id],
      ["In the registry", time(d.created, now)],
      ["Managed by", d.manager],
      ["Made from", d.source],
      ["Sign of life", d.heartbeat ? `expected every ${span(d.heartbeat * 1e3)}` : ""],
      ["Taints", d.taints?.join(", ")]
    ])),
    section("Conditions", conditions(d.conditions, now)),
    section("Endpoints", ...d.endpoints.length ? d.endpoints.map((e) => el(
      "div",
      "card",
      {},
      el("div", "line", {}, theirs(e.name, "strong"), theirs(e.url || "no address yet", "mono")),
      facts([["Server name", e.serverName], ["Proxy", e.proxy], ["For clients in", e.clients]]),
      ...(e.authorities ?? []).map((a) => facts([["CA", a.subject], ["Expires", ends(a.notAfter, now)], ["SHA-256", el("code", "", { title: a.sha256 }, a.sha256.slice(0, 16) + "…")]]))
    )) : [el("p", "muted", {}, "None: no one can reach it by this entry.")]),
    section("Access", d.access.length ? el("ul", "plain", {}, ...d.access.map((a) => el(
      "li",
      "",
      {},
      el("div", "line", {}, theirs(a.name, "strong"), el("span", "muted", {}, `${a.audience}, ${a.kind}`)),
      a.how ? theirs(a.how, "mono message") : ""
    ))) : el("p", "muted", {}, "None: people and controllers need credentials from elsewhere.")),
    section("Reporters", ...d.reporters.length ? d.reporters.map((r) => el(
      "div",
      "card",
      {},
      el("div", "line", {}, theirs(r.name, "strong"), el("span", "muted right", {}, r.seen ? "sign of life " : "no sign of life yet", time(r.seen, now))),
      r.conditions.length ? conditions(r.conditions, now) : ""
    )) : [el("p", "muted", {}, "No controller reports this cluster.")]),
    ...d.properties.length ? [section("Properties", facts(d.properties.map((p) => [p.name, p.value])))] : [],
    ...Object.keys(d.labels ?? {}).length ? [section("Labels", el("p", "labels", {}, ...Object.entries(d.labels).map(([k, v]) => theirs(`${k}=${v}`, "label"))))] : []
  ];
}

// src/frame.ts
var names = { clusters: "Clusters", registries: "Registries", backups: "Backups" };
function banners(alerts2, live2, connections2, lost2, unprobed) {
  const texts = [];
  if (lost2) texts.push([`Connection to the command lost since ${clock(lost2.since)}; what you see is from ${clock(lost2.seen)}.`, lost2.final ? lost2.reason : `${sentence(lost2.reason)}. If you have ended it, run "kubectl registry ui" again.`]);
  else {
    if (unprobed) texts.push(["Nothing probes the clusters, so how they are is not known.", "No replica of the controller leads: see Registries."]);
    for (const c of connections2.values()) {
      if (c.state === "Lost") texts.push([`${names[c.source]}: connection lost since ${clock(Date.parse(c.since))}${c.seen ? `; what you see is from ${clock(Date.parse(c.seen))}` : ""}.`, c.message ?? ""]);
    }
  }
  const wanted2 = texts.flat().join("\n");
  if (alerts2.dataset.text !== wanted2) {
    alerts2.dataset.text = wanted2;
    alerts2.replaceChildren(...texts.map(([head, why]) => el("p", "", {}, el("strong", "", {}, head), " ", theirs(why))));
  }
  const states = [...connections2.values()].map((c) => c.state);
  const state2 = lost2 || states.includes("Lost") ? "lost" : states.includes("Loading") || !states.length ? "loading" : "ok";
  live2.className = "live " + state2;
  write(live2, { lost: "Not live", loading: "Connecting", ok: "Live" }[state2]);
}
var sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);
var kept = "kubectl-registry-ui-theme";
var dark = matchMedia("(prefers-color-scheme: dark)");
var theme = {
  button: el("button", "icon", { type: "button", click: () => theme.toggle() }),
  get dark() {
    return (localStorage.getItem(kept) ?? (dark.matches ? "dark" : "light")) === "dark";
  },
  toggle() {
    localStorage.setItem(kept, theme.dark ? "light" : "dark");
    theme.apply();
  },
  apply() {
    document.documentElement.dataset.theme = theme.dark ? "dark" : "light";
    const other = theme.dark ? "Light colors" : "Dark colors";
    theme.button.setAttribute("aria-label", other);
    theme.button.title = other + " (t)";
    write(theme.button, theme.dark ? "☀" : "☾");
  }
};
dark.addEventListener("change", () => theme.apply());
theme.apply();

// src/registries.ts
var mostBackups = 12;
function registries(all, backups, connection, now) {
  if (!all.length) {
    const text = connection?.state === "Live" ? "The host cluster has no ClusterRegistry that you may see." : connection?.state === "Loading" || !connection ? "Reading the ClusterRegistries…" : connection.message || "The ClusterRegistries are not known.";
    return [el("p", "empty", {}, text)];
  }
  return [...all].sort((a, b) => a.key < b.key ? -1 : 1).map((r) => registry(r, backups.filter((b) => b.registry === r.key), now));
}
function state(r) {
  if (r.error) return ["unknown", "Unreadable"];
  if (r.available === "False") return ["bad", "Not available"];
  if (r.available !== "True") return ["unknown", "Perhaps not available"];
  return r.ready === "True" ? ["ok", "Ready"] : ["unknown", "Available, not ready"];
}
function registry(r, backups, now) {
  const [mark, words2] = state(r);
  return el(
    "article",
    "registry",
    { "aria-label": "ClusterRegistry " + r.key },
    el(
      "header",
      "",
      {},
      el("h2", "", {}, theirs(r.name)),
      el("span", "muted", {}, theirs(r.namespace)),
      el("span", "line", {}, el("span", "dot " + mark, { "aria-hidden": "true" }), words2),
      r.paused ? el("span", "warn", {}, "Paused: the operator changes nothing") : ""
    ),
    r.error ? theirs(r.error, "message") : "",
    ...(r.problems ?? []).map((p) => el("div", "problem " + p.severity, {}, el("p", "", {}, el("span", "strong", {}, p.severity), " ", theirs(p.message)), el("p", "muted", {}, "Next: ", el("code", "", {}, theirs(p.next))))),
    r.operation ? operation(r, now) : "",
    el(
      "div",
      "columns",
      {},
      el(
        "div",
        "",
        {},
        section("Registry", facts([
          ["Version", r.version === r.desired ? r.version : `${r.version || "none"}, ${r.desired} is desired`],
          ["Mode", r.mode],
          ["Servers", r.servers && r.servers + " ready"],
          ["Address", r.endpoint],
          ["Host cluster", r.hostVersion]
        ])),
        section("etcd", r.etcd || r.etcdVersion ? facts([["Members", r.etcd && r.etcd + " ready"], ["Version", r.etcdVersion]]) : el("p", "muted", {}, "Nothing is reported."), r.members?.length ? members(r) : ""),
        section("Certificates", r.certificates?.length ? table("Certificates of " + r.key, ["Name", "Use", "Expires", "Renewed"], r.certificates.map((c) => [theirs(c.name), c.use || "", ends(c.notAfter, now), ends(c.renewal, now)])) : el("p", "muted", {}, "None is reported.")),
        r.history?.length ? section("Releases", table("Releases of " + r.key, ["Release", "State", "Began", "Took"], r.history.slice(0, 6).map((h) => [theirs(h.version), theirs(h.state), time(h.started, now), h.started && h.ended ? span(Date.parse(h.ended) - Date.parse(h.started)) : ""]))) : ""
      ),
      el(
        "div",
        "",
        {},
        section("Conditions", conditions(r.conditions ?? [], now)),
        section("Backups", facts([["Schedule", r.schedule], ["Next", r.nextBackup && when(r.nextBackup, now)], ["Oldest", time(r.oldestBackup, now)], ["Newest", time(r.newestBackup, now)]]), backupTable(r, backups, now))
      )
    )
  );
}
var when = (at, now) => Date.parse(at) > now ? `in ${span(Date.parse(at) - now)}, at ${clock(Date.parse(at))}` : `due since ${clock(Date.parse(at))}`;
function operation(r, now) {
  const [, done, all] = /(\d+)\/(\d+)\s*$/.exec(r.operation ?? "") ?? [];
  return el(
    "div",
    "operation",
    {},
    el("p", "line", {}, el("span", "strong", {}, "Under way"), theirs(r.operation), r.phase ? el("span", "muted right", {}, "phase ", theirs(r.phase.name), " for ", span(now - Date.parse(r.phase.since ?? "")), r.phase.held ? ", then held" : "") : ""),
    el("progress", "", { "aria-label": "Progress of the phase", ...all ? { max: all, value: done } : {} })
  );
}
function members(r) {
  return table("etcd members of " + r.key, ["Member", "State", "Version", "Database"], r.members.map((m) => [
    theirs(m.name),
    el("span", "line", {}, el("span", "dot " + (m.ready ? "ok" : "bad"), { "aria-hidden": "true" }), m.ready ? m.role : "not ready"),
    theirs(m.version),
    m.size ? `${size(m.size)}${m.quota ? " of " + size(m.quota) : ""}` : ""
  ]));
}
function backupTable(r, backups, now) {
  if (!backups.length) return el("p", "muted", {}, r.schedule ? "There is no backup yet." : "No backup, and none is scheduled.");
  const newest = [...backups].sort((a, b) => (a.created ?? "") < (b.created ?? "") ? 1 : -1);
  const mark = (phase) => phase === "Failed" || phase === "Damaged" ? "bad" : phase === "Completed" || phase === "Skipped" ? "ok" : "unknown";
  return el(
    "div",
    "",
    {},
    table("Backups of " + r.key, ["Backup", "State", "Taken", "Verified", "Size"], newest.slice(0, mostBackups).map((b) => [
      theirs(b.name),
      el("span", "line", { title: b.message || void 0 }, el("span", "dot " + mark(b.phase), { "aria-hidden": "true" }), theirs(b.phase || "Pending")),
      time(b.created, now),
      time(b.verified, now),
      b.bytes ? size(b.bytes) : ""
    ])),
    newest.length > mostBackups ? el("p", "muted", {}, `and ${number(newest.length - mostBackups)} older ones`) : ""
  );
}
function table(label2, heads, rows) {
  return el("div", "scroll", {}, el(
    "table",
    "",
    { "aria-label": label2 },
    el("thead", "", {}, el("tr", "", {}, ...heads.map((h) => el("th", "", { scope: "col" }, h)))),
    el("tbody", "", {}, ...rows.map((row) => el("tr", "", {}, ...row.map((cell) => el("td", "", {}, cell)))))
  ));
}

// src/stream.ts
var kept2 = "kubectl-registry-ui-key";
var silence = 16e3;
function takeKey() {
  const given = /^#key=([A-Za-z0-9]+)$/.exec(location.hash)?.[1];
  if (given) {
    sessionStorage.setItem(kept2, given);
    history.replaceState(null, "", location.pathname + "#/clusters");
  }
  return sessionStorage.getItem(kept2) ?? "";
}
function get(path, key2, signal) {
  return fetch(path, { headers: { Authorization: "Bearer " + key2 }, cache: "no-store", credentials: "omit", redirect: "error", signal });
}
var Refused = class extends Error {
};
async function listen(key2, to) {
  for (let wait = 1e3; ; wait = Math.min(wait * 1.5, 1e4)) {
    try {
      const final = await once(key2, to, () => {
        wait = 1e3;
      });
      if (final) return to.lost(final, true);
      to.lost("the command has ended the connection", false);
    } catch (e) {
      to.lost(e instanceof Refused ? e.message : "the command does not answer", false);
    }
    await new Promise((done) => setTimeout(done, wait));
  }
}
async function once(key2, to, connected) {
  const stop = new AbortController();
  let timer = setTimeout(() => stop.abort(), silence);
  try {
    const response = await get("/api/stream", key2, stop.signal);
    if (response.status === 401 || response.status === 403) return (await response.text()).trim();
    if (!response.ok || !response.body) throw new Refused((await response.text()).trim() || response.statusText);
    connected();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (; ; ) {
      const { done, value: value2 } = await reader.read();
      if (done) return "";
      clearTimeout(timer);
      timer = setTimeout(() => stop.abort(), silence);
      to.heard();
      const events = (rest + value2).split("\n\n");
      rest = events.pop();
      for (const event of events) dispatch(event, to);
    }
  } finally {
    clearTimeout(timer);
    stop.abort();
  }
}
function dispatch(event, to) {
  const [, name, data] = /^event: (\w+)\ndata: (.*)$/s.exec(event) ?? [];
  if (name === "about") to.about(JSON.parse(data));
  if (name === "change") to.change(JSON.parse(data));
}

// src/table.ts
var height = 32;
var spare = 8;
var columns = [
  { id: "name", title: "Cluster", sorts: "name" },
  { id: "health", title: "Health", sorts: "health" },
  { id: "history", title: "Since opened" },
  { id: "version", title: "Version", sorts: "version" },
  { id: "set", title: "Set", sorts: "set" },
  { id: "region", title: "Region", sorts: "region" },
  { id: "labels", title: "Labels" },
  { id: "expires", title: "Certificate", sorts: "expires" },
  { id: "seen", title: "Last seen", sorts: "seen" }
];
var keyOf = (line) => "entry" in line ? "c/" + line.entry.row.name : "g/" + line.group;
var Table = class {
  constructor(fleet2, actions) {
    this.fleet = fleet2;
    this.actions = actions;
    const head = el("div", "row head", { role: "row", "aria-rowindex": 1 }, ...columns.map((column, i) => {
      const sorts = column.sorts;
      const cell = el(
        "div",
        "cell " + column.id,
        { role: "columnheader", "aria-colindex": i + 1 },
        sorts ? el("button", "sort", { type: "button", click: () => actions.sort(sorts) }, column.title) : column.title
      );
      if (sorts) this.heads.set(sorts, cell);
      return cell;
    }));
    this.body = el("div", "lines", { role: "rowgroup" });
    this.element = el("div", "table", {
      role: "treegrid",
      tabindex: 0,
      "aria-label": "Clusters",
      "aria-colcount": columns.length,
      "aria-readonly": "true",
      keydown: (e) => this.key(e),
      scroll: () => requestAnimationFrame(() => this.draw()),
      focus: () => {
        if (this.active < 0) this.move(this.top());
      }
    }, el("div", "heads", { role: "rowgroup" }, head), this.body);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }
  fleet;
  actions;
  element;
  body;
  heads = /* @__PURE__ */ new Map();
  lines = [];
  active = -1;
  activeKey = "";
  /** shown are the lines in the document, by the key of the line and its place. */
  shown = /* @__PURE__ */ new Map();
  now = 0;
  opened = "";
  /** show shows lines. The line that is active stays so wherever it has gone. */
  show(lines2, query2, now) {
    this.lines = lines2;
    this.now = now;
    this.body.style.height = lines2.length * height + "px";
    this.element.setAttribute("aria-rowcount", String(lines2.length + 1));
    for (const [column, cell] of this.heads) {
      if (query2.sort === column) cell.setAttribute("aria-sort", query2.down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    this.active = this.activeKey ? lines2.findIndex((line) => keyOf(line) === this.activeKey) : -1;
    this.draw(true);
    if (this.active < 0 && document.activeElement === this.element) this.move(this.top());
  }
  focus() {
    this.element.focus({ preventScroll: true });
  }
  /** reset scrolls to the first line. */
  reset() {
    this.element.scrollTop = 0;
    this.active = -1;
    this.activeKey = "";
  }
  top() {
    return Math.min(this.lines.length - 1, Math.ceil(this.element.scrollTop / height));
  }
  page() {
    return Math.max(1, Math.floor(this.element.clientHeight / height) - 2);
  }
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.element) return;
    const line = this.lines[this.active];
    const steps = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: this.page(), PageUp: -this.page(), Home: -this.lines.length, End: this.lines.length };
    if (event.key in steps) this.move(this.active < 0 ? this.top() : this.active + steps[event.key]);
    else if (!line) return;
    else if (event.key === "Enter" || event.key === " ") this.act(line);
    else if ("group" in line && (event.key === "ArrowLeft" || event.key === "ArrowRight")) {
      if (line.closed === (event.key === "ArrowRight")) this.actions.toggle(line.group);
    } else return;
    event.preventDefault();
  }
  act(line) {
    if ("entry" in line) this.actions.open(line.entry.row.name);
    else this.actions.toggle(line.group);
  }
  move(to) {
    this.active = Math.max(0, Math.min(this.lines.length - 1, to));
    const line = this.lines[this.active];
    if (!line) {
      this.active = -1;
      return;
    }
    this.activeKey = keyOf(line);
    const top = this.active * height, view2 = this.element.clientHeight - height;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    if (top + height > this.element.scrollTop + view2) this.element.scrollTop = top + height - view2;
    this.draw();
  }
  /** draw makes the lines in sight, and fills those again that are there already. */
  draw(all = false) {
    const first = Math.max(0, Math.floor(this.element.scrollTop / height) - spare);
    const end = Math.min(this.lines.length, first + Math.ceil(this.element.clientHeight / height) + 2 * spare);
    const stay = /* @__PURE__ */ new Map();
    for (let index = first; index < end; index++) {
      const line = this.lines[index], key2 = keyOf(line);
      let item = this.shown.get(key2);
      if (!item) {
        item = { row: el("div", "row", { role: "row", click: () => this.click(key2) }), line, index: -1 };
        this.body.append(item.row);
        this.fill(item);
      } else if (all) {
        item.line = line;
        this.fill(item);
      }
      this.shown.delete(key2);
      if (item.index !== index) {
        item.index = index;
        item.row.style.transform = `translateY(${index * height}px)`;
        item.row.setAttribute("aria-rowindex", String(index + 2));
        item.row.id = "line-" + index;
      }
      item.row.classList.toggle("active", index === this.active);
      stay.set(key2, item);
    }
    for (const { row } of this.shown.values()) row.remove();
    this.shown = stay;
    if (this.active >= first && this.active < end) this.element.setAttribute("aria-activedescendant", "line-" + this.active);
    else this.element.removeAttribute("aria-activedescendant");
  }
  fill(item) {
    const { line, row } = item, open = "entry" in line && line.entry.row.name === this.opened;
    row.classList.toggle("group", "group" in line);
    row.classList.toggle("open", open);
    row.setAttribute("aria-level", this.grouped() && "entry" in line ? "2" : "1");
    if ("group" in line) row.setAttribute("aria-expanded", line.closed ? "false" : "true");
    else row.setAttribute("aria-selected", open ? "true" : "false");
    const cells = "entry" in line ? this.cells(line.entry) : [this.head(line)];
    cells.forEach((cell, i) => {
      const old = row.children[i];
      if (!old) row.append(cell);
      else if (!old.isEqualNode(cell)) old.replaceWith(cell);
    });
  }
  cells({ row, health: health2 }) {
    const now = this.now;
    const cells = {
      name: [theirs(row.name, "strong"), row.display && row.display !== row.name ? theirs(row.display, "muted display") : ""],
      health: [el("span", "dot " + health2, { "aria-hidden": "true" }), el("span", "", {}, words(row, health2)), row.reason && health2 !== "ok" ? theirs(row.reason, "muted reason") : ""],
      history: [strip(this.fleet, row.name, now)],
      version: [theirs(row.version)],
      set: [theirs(row.set)],
      region: [theirs(row.region)],
      labels: Object.entries(row.labels ?? {}).filter(([k]) => k !== "region").slice(0, 6).map(([k, v]) => theirs(`${k}=${v}`, "label")),
      expires: [el("span", soon(row.expires, now), { title: exact(row.expires) }, until(row.expires, now))],
      seen: [el("span", "", { title: exact(row.seen) }, ago(row.seen, now))]
    };
    return columns.map((column, i) => el("div", "cell " + column.id, { role: "gridcell", "aria-colindex": i + 1 }, ...cells[column.id]));
  }
  head(line) {
    return el(
      "div",
      "cell",
      { role: "gridcell", "aria-colindex": 1, "aria-colspan": columns.length },
      el("span", "twist", { "aria-hidden": "true" }),
      line.group ? theirs(line.group, "strong") : el("span", "muted", {}, "none"),
      el("span", "muted", {}, `${number(line.total)} ${line.total === 1 ? "cluster" : "clusters"}, ${number(line.ok)} available`),
      line.bad ? el("span", "bad", {}, `${number(line.bad)} not available`) : ""
    );
  }
  grouped() {
    return this.lines[0] !== void 0 && !("entry" in this.lines[0]);
  }
  click(key2) {
    if (getSelection()?.type === "Range") return;
    this.activeKey = key2;
    this.active = this.lines.findIndex((line2) => keyOf(line2) === key2);
    const line = this.lines[this.active];
    if (line) this.act(line);
  }
};
function empty(element, text) {
  element.hidden = text === "";
  write(element, text);
}

// src/main.ts
var key = takeKey();
var fleet = new Fleet(Date.now());
var view = new View(fleet);
var known = { registries: /* @__PURE__ */ new Map(), backups: /* @__PURE__ */ new Map() };
var epochs = /* @__PURE__ */ new Map();
var connections = /* @__PURE__ */ new Map();
var closed = /* @__PURE__ */ new Set();
var query = { text: "", health: "", group: "", sort: "health", down: false };
var epoch = 0;
var heard = Date.now();
var lost;
var detail;
var search = el("input", "search", { type: "search", placeholder: "Filter by name, version, label=value…", "aria-label": "Filter the clusters", autocomplete: "off", spellcheck: "false", input: () => {
  query.text = search.value;
  refilter();
} });
var chips = /* @__PURE__ */ new Map();
for (const health2 of ["", "bad", "unknown", "none", "ok"]) {
  chips.set(health2, el(
    "button",
    "chip",
    { type: "button", "aria-pressed": "false", click: () => {
      query.health = query.health === health2 ? "" : health2;
      refilter();
    } },
    health2 ? el("span", "dot " + health2, { "aria-hidden": "true" }) : "",
    el("span", "", {}, health2 ? healths[health2] : "All"),
    el("span", "count", {}, "0")
  ));
}
var group = el("select", "", { "aria-label": "Group the clusters by", change: () => {
  query.group = group.value;
  closed.clear();
  refilter();
} });
var found = el("p", "found muted", { role: "status" });
var nothing = el("p", "empty", { hidden: true });
var table2 = new Table(fleet, {
  open: (name) => go("#/clusters/" + encodeURIComponent(name)),
  sort: (column) => {
    query.down = query.sort === column && !query.down;
    query.sort = column;
    refilter();
  },
  toggle: (name) => {
    if (!closed.delete(name)) closed.add(name);
    update();
  }
});
var title = el("h2", "", { tabindex: -1 });
var content = el("div", "content", { tabindex: 0, role: "region", "aria-label": "Details" });
var panel = el(
  "div",
  "panel",
  { role: "region", "aria-label": "Cluster", hidden: true },
  el("header", "", {}, title, el("button", "icon", { type: "button", "aria-label": "Close", title: "Close (Esc)", click: () => close() }, "×")),
  content
);
var clusters = el(
  "main",
  "clusters",
  {},
  el("h1", "hidden", {}, "Clusters"),
  el("div", "tools", {}, search, el("div", "chips", { role: "group", "aria-label": "Health" }, ...chips.values()), el("label", "group", {}, "Group", group), found),
  el("div", "split", {}, el("div", "whole", {}, table2.element, nothing), panel)
);
var sheet = el("div", "sheet");
var registriesPage = el("main", "registries", { hidden: true, tabindex: 0, "aria-label": "Registries" }, el("h1", "hidden", {}, "Registries"), sheet);
var tabs = { clusters: el("a", "", { href: "#/clusters" }, "Clusters"), registries: el("a", "", { href: "#/registries" }, "Registries") };
var context = el("span", "context muted");
var live = el("span", "live", { role: "status" });
var alerts = el("div", "alerts", { role: "alert" });
var help = el(
  "dialog",
  "help",
  { "aria-label": "Keys" },
  el("h2", "", {}, "Keys"),
  el(
    "dl",
    "facts",
    {},
    ...[["/", "filter"], ["↑ ↓ j k", "line by line"], ["PgUp PgDn Home End", "page by page, first, last"], ["Enter", "open the cluster, or open and close the group"], ["← →", "close and open the group"], ["Esc", "close the panel, clear the filter"], ["c r", "clusters, registries"], ["t", "light or dark"], ["?", "these keys"]].flatMap(([k, what]) => [el("dt", "", {}, ...k.split(" ").map((one) => el("kbd", "", {}, one))), el("dd", "", {}, what)])
  ),
  el("p", "muted", {}, "In the filter, all words must match; a word after ! must not. A label is key=value."),
  el("form", "", { method: "dialog" }, el("button", "chip", {}, "Close"))
);
document.body.replaceChildren(
  el(
    "header",
    "top",
    {},
    el("span", "brand", {}, "Cluster registry"),
    context,
    el("nav", "", { "aria-label": "Pages" }, tabs.clusters, tabs.registries),
    live,
    theme.button,
    el("button", "icon", { type: "button", "aria-label": "Keys", title: "Keys (?)", click: () => help.showModal() }, "?")
  ),
  alerts,
  clusters,
  registriesPage,
  help
);
var wanted = false;
function update() {
  if (wanted) return;
  wanted = true;
  requestAnimationFrame(() => {
    wanted = false;
    draw();
  });
}
function refilter() {
  table2.reset();
  update();
}
function draw() {
  const now = Date.now(), count = fleet.entries.size;
  const { counts: all, lines: list, labels } = view.answer(query, closed);
  for (const [health2, chip] of chips) {
    write(chip.querySelector(".count"), number(health2 ? all[health2] : all.all));
    chip.setAttribute("aria-pressed", String(query.health === health2));
  }
  const shown = query.health ? all[query.health] : all.all;
  write(found, `${number(shown)} of ${number(count)} ${count === 1 ? "cluster" : "clusters"}`);
  table2.show(list, query, now);
  const source = connections.get("clusters");
  empty(nothing, list.length ? "" : count ? "No cluster matches." : !source || source.state === "Loading" ? "Reading the clusters…" : source.state === "Live" ? "There is no cluster in the registry that you may see." : source.message || "The clusters are not known.");
  grouping(labels);
  if (!registriesPage.hidden && getSelection()?.type !== "Range") sheet.replaceChildren(...registries([...known.registries.values()], [...known.backups.values()], connections.get("registries"), now));
  if (table2.opened && detail && getSelection()?.type !== "Range" && !content.contains(document.activeElement)) content.replaceChildren(...cluster(detail, fleet, now));
  banners(alerts, live, connections, lost, fleet.unprobed);
}
function grouping(labels) {
  const options = ["", "set", "region", "version", "health", ...labels.filter((l) => l !== "region").map((l) => "label:" + l)];
  if (query.group && !options.includes(query.group)) options.push(query.group);
  if (document.activeElement === group || [...group.options].map((o) => o.value).join() === options.join()) return;
  group.replaceChildren(...options.map((o) => el("option", "", { value: o }, o === "" ? "none" : o.replace(/^label:/, "label "))));
  group.value = query.group;
}
function change(c) {
  const now = Date.now();
  for (const row of c.set?.clusters ?? []) fleet.set(row, now, epoch);
  for (const name of c.gone?.clusters ?? []) fleet.remove(name, now);
  for (const kind of ["registries", "backups"]) {
    for (const one of c.set?.[kind] ?? []) {
      known[kind].set(one.key, one);
      epochs.set(kind + one.key, epoch);
    }
    for (const name of c.gone?.[kind] ?? []) {
      known[kind].delete(name);
      epochs.delete(kind + name);
    }
  }
  fleet.probed(![...known.registries.values()].some((r) => r.unprobed), now);
  for (const connection of c.connections ?? []) connections.set(connection.source, connection);
  if (c.connections) settle(now);
  const open = location.hash.startsWith("#/clusters/") ? table2.opened : "";
  if (open && (c.set?.clusters?.some((r) => r.name === open && r.resource !== detail?.resource) || c.gone?.clusters?.includes(open))) void read(open);
  update();
}
function settle(now) {
  fleet.sweep(epoch, now);
  for (const kind of ["registries", "backups"]) for (const name of known[kind].keys()) if (epochs.get(kind + name) !== epoch) known[kind].delete(name);
  fleet.known(!lost && connections.get("clusters")?.state === "Live", now);
}
async function read(name) {
  let problem = "";
  try {
    const response = await get("/api/clusters/" + encodeURIComponent(name), key, AbortSignal.timeout(2e4));
    if (response.ok) detail = await response.json();
    else problem = response.status === 404 ? "It is not in the registry: it was removed, or you may not see it." : await response.text();
  } catch {
    problem = "The command does not answer. A browser opens few connections at once: close other tabs with this page.";
  }
  if (table2.opened !== name) return;
  if (problem) {
    detail = void 0;
    content.replaceChildren(el("p", "empty", {}, theirs(problem)));
  } else content.replaceChildren(...cluster(detail, fleet, Date.now()));
}
function close() {
  go("#/clusters");
  table2.focus();
}
function go(hash) {
  location.hash = hash;
  route();
}
function nameIn(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return "";
  }
}
function route() {
  if (location.hash.startsWith("#key=")) {
    takeKey();
    return location.reload();
  }
  const [, page, name] = /^#\/(clusters|registries)(?:\/([^/]+))?$/.exec(location.hash) ?? [, "clusters"];
  const opened = page === "clusters" && name ? nameIn(name) : "";
  clusters.hidden = page !== "clusters";
  registriesPage.hidden = page === "clusters";
  for (const [tab, link] of Object.entries(tabs)) if (tab === page) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
  document.title = (opened || (page === "registries" ? "Registries" : "Clusters")) + " · kubectl registry";
  const differs2 = table2.opened !== opened;
  table2.opened = opened;
  panel.hidden = !opened;
  if (opened && differs2) {
    detail = void 0;
    title.replaceChildren(theirs(opened));
    content.replaceChildren(el("p", "empty", {}, "Reading the cluster…"));
    void read(opened);
    title.focus();
  }
  update();
}
function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
  if (event.key === "Escape") {
    if (typing && search.value) {
      search.value = query.text = "";
      refilter();
    } else if (!panel.hidden) close();
    else if (query.text || query.health) {
      search.value = query.text = query.health = "";
      refilter();
    } else table2.focus();
  } else if (event.target === search && (event.key === "ArrowDown" || event.key === "Enter")) table2.focus();
  else if (typing) return;
  else if (event.key === "/") {
    if (clusters.hidden) go("#/clusters");
    search.focus();
    search.select();
  } else if (event.key === "c") close();
  else if (event.key === "r") {
    go("#/registries");
    registriesPage.focus();
  } else if (event.key === "t") theme.toggle();
  else if (event.key === "?") help.showModal();
  else return;
  event.preventDefault();
}
addEventListener("hashchange", route);
document.addEventListener("keydown", keys);
setInterval(update, 5e3);
route();
void listen(key, {
  about(about) {
    epoch++;
    lost = void 0;
    write(context, about.context + (about.namespace ? `, namespace ${about.namespace}` : ""));
    update();
  },
  change,
  heard() {
    heard = Date.now();
  },
  lost(reason, final) {
    lost = { since: lost?.since ?? Date.now(), seen: heard, reason, final };
    fleet.known(false, Date.now());
    update();
  }
});
