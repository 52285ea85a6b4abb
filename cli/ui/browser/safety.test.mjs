// That the page can't be made to do what others want: not by what they write into the registry,
// and not by other pages.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { browser, check, cluster, row, rows, settled, until } from './site.mjs'

const scripts = [
  '<img src=x onerror="globalThis.owned=1;alert(1)">',
  '<script>globalThis.owned=1;alert(1)</script>',
  '"><svg onload=globalThis.owned=1>',
  "'><iframe srcdoc='<script>parent.owned=1</script>'></iframe>",
  'javascript:globalThis.owned=1',
  '{{constructor.constructor("globalThis.owned=1")()}}${globalThis.owned=1}',
  '</title></style></script><script>globalThis.owned=1</script>',
  'url(//evil.example/x)',
]
/** unusual are names of what every object in JavaScript has. */
const unusual = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf']

/** hostile is a cluster that has a text wherever one can be. */
function hostile(name, text) {
  const one = cluster(name, { displayName: text, reason: text, version: text, set: text, available: 'False' })
  one.metadata.labels = { region: text, [text]: text }
  const [condition] = one.status.conditions
  Object.assign(one.spec, {
    id: text, manager: { name: text }, sourceRef: { kind: text, name: text }, taints: [{ key: text, value: text, effect: text }],
    endpoints: [{ name: text, url: text, tlsServerName: text, proxyURL: text, clientCIDRs: [text] }],
    access: [{ name: text, audience: text, exec: { apiVersion: 'v1', command: text, args: [text] } }, { name: text, audience: 'User', oidc: { issuerURL: text, clientID: text } }],
  })
  one.status.properties = [{ name: text, value: text }]
  one.status.reporters = [{ name: text, conditions: [{ ...condition, type: text, message: text }] }]
  one.status.conditions = [{ ...condition, message: text }, { ...condition, type: text, status: text, message: text }]
  return one
}

/** untouched expects that the page consists of nothing but what its own script makes. */
async function untouched(page, state) {
  await settled(page)
  const { owned, found } = await page.evaluate(() => ({
    owned: globalThis.owned,
    found: [...document.querySelectorAll('img, svg, iframe, object, embed, style, script:not([src="app.js"]), link:not([href="app.css"]):not([href="icon.svg"]), [onerror], [onload], a:not([href^="#/"])')].map(e => e.outerHTML),
  }))
  assert.equal(owned, undefined, `${state}: a text was run`)
  assert.deepEqual(found, [], `${state}: a text has become markup`)
}

check('shows text as text', { clusters: 0, expected: /Failed to load resource|Fetch API/ }, async (page, site) => {
  const texts = [...scripts, ...unusual]
  await site.change({ put: texts.flatMap((text, i) => [hostile(`hostile-${i}`, text), cluster(text)]) })
  await page.getByText(`${2 * texts.length} of ${2 * texts.length} clusters`).waitFor()
  await untouched(page, 'the table')
  const shown = await page.locator('.lines').textContent()
  for (const text of texts) assert.ok(shown.includes(text), `${text} is not shown`)
  for (const [i, text] of texts.entries()) {
    await row(page, `hostile-${i}`).click()
    const panel = page.locator('.panel')
    await panel.getByRole('heading', { name: 'Reporters' }).waitFor()
    await untouched(page, text)
    assert.ok((await panel.locator('.content').textContent()).split(text).length > 15, `${text} is not shown everywhere`)
    await page.keyboard.press('Escape')
  }
  for (const text of texts) { // which the URL and the title get
    await page.evaluate(name => { location.hash = '#/clusters/' + encodeURIComponent(name) }, text)
    await until(`${text} is not opened`, async () => (await page.title()).startsWith(text))
    await untouched(page, `${text} as a name`)
  }
  await page.evaluate(() => { location.hash = '#/clusters' })
  for (const by of ['set', 'region', 'version', ...texts.map(text => 'label:' + text)]) {
    const group = page.getByLabel('Group the clusters by')
    if (!await group.locator('option').evaluateAll((all, value) => all.some(o => o.value === value), by)) continue
    await group.selectOption(by)
    await untouched(page, `groups by ${by}`)
  }
})

check('groups by labels whose names every object has', { clusters: 0 }, async (page, site) => {
  await site.change({ put: [...unusual.map(key => cluster('with-' + key.replaceAll('_', ''), { labels: { [key]: 'mine' } })), cluster('without')] })
  await page.getByText('6 of 6 clusters').waitFor()
  for (const key of unusual) {
    await page.getByLabel('Group the clusters by').selectOption('label:' + key)
    const heads = (await rows(page)).filter(name => name.endsWith(':'))
    assert.deepEqual(heads, ['mine:', 'none:'], key)
  }
})

check('keeps its key out of the URL and the document', { clusters: 1 }, async (page, site) => {
  const key = new URL(site.url).hash.replace('#key=', '')
  assert.match(key, /^[A-Z0-9]{50,}$/)
  assert.equal(page.url(), site.origin + '/#/clusters')
  assert.ok(!(await page.content()).includes(key), 'the document has the key')
  assert.equal(await page.evaluate(() => document.cookie), '')
  const stranger = await (await browser()).newContext()
  try {
    const other = await stranger.newPage()
    await other.goto(site.origin)
    await other.getByText('the key is missing or is that of another run').waitFor()
  } finally { await stranger.close() }
})

check('gives other pages nothing', { clusters: 1 }, async (_, site) => {
  const key = new URL(site.url).hash.replace('#key=', '')
  const evil = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>evil</title>')).listen(0, '127.0.0.1')
  await new Promise(done => evil.once('listening', done))
  const stranger = await (await browser()).newContext()
  try {
    for (const host of ['127.0.0.1', 'localhost']) { // of the same site, and of another one
      const other = await stranger.newPage()
      await other.goto(`http://${host}:${evil.address().port}/`)
      const got = await other.evaluate(async ([origin, key]) => {
        const result = async promise => { try { return await promise } catch (e) { return 'refused: ' + e.name } }
        const read = (path, init) => result(fetch(origin + path, init).then(async r => r.type + ' ' + (await r.text()).length))
        const load = (name, attributes) => new Promise(done => {
          const element = Object.assign(document.createElement(name), { onload: () => done('loaded'), onerror: () => done('refused'), ...attributes })
          document.body.append(element)
        })
        const frame = document.createElement('iframe')
        frame.src = origin + '/'
        const framed = new Promise(done => { frame.onload = done })
        document.body.append(frame)
        await framed
        return {
          page: await read('/'),
          withKey: await read('/api/stream', { headers: { Authorization: 'Bearer ' + key } }),
          blind: await read('/api/stream', { mode: 'no-cors' }),
          events: await result(new Promise(done => { const s = new EventSource(origin + '/api/stream'); s.onopen = () => done('open'); s.onerror = () => done('refused') })),
          script: await load('script', { src: origin + '/app.js', type: 'module' }),
          style: await load('link', { rel: 'stylesheet', href: origin + '/app.css' }),
          image: await load('img', { src: origin + '/icon.svg' }),
        }
      }, [site.origin, key])
      assert.deepEqual(got, {
        page: 'refused: TypeError', withKey: 'refused: TypeError', blind: 'refused: TypeError', events: 'refused',
        script: 'refused', style: 'refused', image: 'refused',
      }, host)
      const [, frame] = other.frames()
      assert.match(frame.url(), /^chrome-error:/, `${host}: it can be framed`)
    }
  } finally {
    await stranger.close()
    evil.close()
  }
})
