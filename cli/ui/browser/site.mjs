// What the tests share: the page served by the command, a browser that reports all that a page
// must not do, and how long the page keeps the browser busy.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import axe from 'axe-core'
import { chromium } from 'playwright-core'

/** program is bin/ui-site, which "make ui-browser" builds. */
const program = new URL('../../../bin/ui-site', import.meta.url).pathname

let running
/** browser returns the one browser of this process. No name leads out of this computer. */
export function browser() {
  running ??= chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'],
  })
  return running
}
after(async () => (await running)?.close())

/** serve starts the command with a fleet that is made up, until the process or kill ends it. */
export async function serve(clusters) {
  const command = spawn(program, ['--clusters', String(clusters)], { stdio: ['pipe', 'pipe', 'ignore'] })
  command.stdin.on('error', () => {}) // it may have been killed
  const lines = createInterface({ input: command.stdout })[Symbol.asyncIterator]()
  const line = async () => {
    const { value, done } = await lines.next()
    if (done) throw new Error(`${program} has ended`)
    return value
  }
  const url = await line()
  return {
    url,
    origin: new URL(url).origin,
    /** change makes changes, and returns when they are made. */
    async change(what) {
      command.stdin.write(JSON.stringify(what) + '\n')
      assert.equal(await line(), 'done')
    },
    kill() {
      command.kill('SIGKILL')
      return new Promise(ended => command.once('exit', ended))
    },
    end() { command.stdin.end() },
  }
}

/** record keeps all requests of a context, and all that a page must not do. */
export function record(context) {
  const seen = { requests: [], faults: [] }
  context.on('request', request => seen.requests.push({ url: request.url(), method: request.method(), headers: request.headers() }))
  context.on('console', message => { if (['error', 'warning'].includes(message.type())) seen.faults.push(message.text()) })
  context.on('weberror', error => seen.faults.push(String(error.error())))
  context.on('dialog', dialog => { seen.faults.push('a dialog: ' + dialog.message()); void dialog.dismiss() })
  context.on('page', page => {
    page.on('websocket', socket => seen.faults.push('a socket: ' + socket.url()))
    page.on('download', download => seen.faults.push('a download: ' + download.url()))
  })
  return seen
}

/** watch runs in the page, before its script: it keeps violations of the policy. */
function watch() {
  globalThis.violations = []
  document.addEventListener('securitypolicyviolation', e => globalThis.violations.push(`${e.violatedDirective}: ${e.blockedURI} ${e.sample}`))
}

/** checkRequests expects that a page has asked its own server for what it has, and no other. */
function checkRequests(requests, origin) {
  const key = /^Bearer [A-Z0-9]{50,}$/
  for (const { url, method, headers } of requests) {
    const { origin: asked, pathname, search } = new URL(url)
    assert.equal(asked, origin, `it has asked for ${url}`)
    assert.equal(method, 'GET', `it has sent ${method} ${url}`)
    assert.match(pathname, /^\/($|app\.js$|app\.css$|icon\.svg$|api\/stream$|api\/clusters\/[^/]+$)/, url)
    assert.equal(search, '', url)
    if (pathname.startsWith('/api/')) assert.match(headers.authorization ?? '', key, `${url} has no key`)
    else assert.equal(headers.authorization, undefined, `${url} has the key`)
    assert.equal(headers.cookie, undefined, `${url} has a cookie`)
  }
}

/**
 * check is a test on a page: of a site that it gets, or of one of its own with so many clusters.
 * After it, nothing may have been asked of any other server, no script may have failed, and
 * nothing may have been against the policy. "expected" are the browser's own messages that the
 * test leads to.
 */
export function check(name, { site: own, clusters = 10, expected, options = {}, wait = true }, body) {
  test(name, { timeout: 600_000 }, async t => {
    const site = own ? own() : await serve(clusters)
    const context = await (await browser()).newContext({ viewport: { width: 1280, height: 720 }, colorScheme: 'light', ...options })
    try {
      const seen = record(context)
      await context.addInitScript(watch)
      const page = await context.newPage()
      page.setDefaultTimeout(60_000)
      await page.goto(site.url)
      if (wait) await live(page)
      await body(page, site, t)
      seen.faults.push(...await page.evaluate(() => globalThis.violations))
      assert.deepEqual(seen.faults.filter(fault => !expected?.test(fault)), [])
      assert.ok(seen.requests.length >= 4, 'no requests were recorded')
      checkRequests(seen.requests, site.origin)
    } finally {
      await context.close()
      if (!own) site.end()
    }
  })
}

/** live waits until all is read. */
export const live = page => page.locator('.live.ok').waitFor()

/** settled waits until what was asked for is drawn. */
export const settled = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 0)))))

/** until waits for a condition; what the page may not evaluate by its policy is asked from here. */
export async function until(reason, condition) {
  for (let i = 0; i < 200; i++) {
    if (await condition()) return
    await new Promise(done => setTimeout(done, 50))
  }
  assert.fail(reason)
}

/** rows are the texts of the names of the lines in sight, from the top. Heads of groups have a colon. */
export async function rows(page) {
  await settled(page)
  return page.locator('.lines .row').evaluateAll(all => all
    .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex)
    .map(row => row.classList.contains('group') ? row.querySelector('.strong, .muted').textContent + ':' : row.querySelector('.name .strong').textContent))
}

/** sort uses the title of a column. */
export const sort = (page, title) => page.locator('.head .sort', { hasText: new RegExp(`^${title}$`) }).click()

/** row is the line of a cluster. */
export const row = (page, name) => page.locator('.lines .row:not(.group)').filter({ has: page.locator('.name .strong', { hasText: new RegExp(`^${name}$`) }) })

/**
 * longest returns the longest time in ms that the page kept the browser from anything else. It is
 * the processor's time, so that it is the same on a computer that is busy.
 */
export async function longest(page, action) {
  const watched = await browser()
  await settled(page)
  await watched.startTracing(page, { categories: ['toplevel', '__metadata'] })
  await action()
  await settled(page)
  const { traceEvents } = JSON.parse(await watched.stopTracing())
  const main = new Set(traceEvents.filter(e => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map(e => `${e.pid} ${e.tid}`))
  const tasks = traceEvents.filter(e => e.ph === 'X' && e.tdur !== undefined && main.has(`${e.pid} ${e.tid}`))
  assert.ok(tasks.length > 0, 'the browser has recorded no tasks')
  return Math.max(...tasks.map(e => e.tdur)) / 1000
}

/** accessible expects that axe finds nothing in the page as it is, by any of its rules. */
export async function accessible(page, state) {
  await settled(page)
  await page.evaluate(axe.source + '; 0')
  const { violations, passes } = await page.evaluate(() => globalThis.axe.run(document, { rules: { 'target-size': { enabled: true } } }))
  assert.ok(passes.some(rule => rule.id === 'color-contrast'), `${state}: axe has checked no contrast`)
  const found = violations.flatMap(v => v.nodes.map(n => `${v.id}: ${n.target.join(' ')}: ${n.failureSummary.replace(/\s+/g, ' ')}`))
  assert.deepEqual(found, [], state)
}

/** cluster makes one. */
export function cluster(name, { labels = {}, available = 'True', reason = 'Probed', version = 'v1.37.1', set = '', ...spec } = {}) {
  return {
    apiVersion: 'clusterregistry.k8s.io/v1beta1', kind: 'Cluster', metadata: { name, labels, creationTimestamp: '2026-01-01T00:00:00Z' }, spec: { clusterSet: set, ...spec },
    status: { version: { kubernetes: version }, conditions: available ? [{ type: 'Available', status: available, reason, message: `${name} says ${reason}`, lastTransitionTime: '2026-01-01T00:00:00Z' }] : [] },
  }
}
