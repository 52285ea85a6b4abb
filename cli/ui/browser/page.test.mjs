// What a person does with the page: find a cluster, with and without a pointer, and see what changes.
import assert from 'node:assert/strict'
import { accessible, check, cluster, live, row, rows, settled, sort } from './site.mjs'

/** few are clusters of which a person knows where each belongs. */
const few = [
  cluster('east', { labels: { env: 'prod', region: 'eu' }, set: 'payments', version: 'v1.37.1' }),
  cluster('west', { labels: { env: 'test', region: 'us' }, set: 'payments', version: 'v1.9.10', available: 'False', reason: 'ConnectionRefused' }),
  cluster('north', { labels: { env: 'prod', region: 'eu' }, version: 'v1.36.3', available: 'Unknown', reason: 'HeartbeatMissing' }),
  cluster('south', { labels: { region: 'us' }, set: 'search', version: '', available: '' }),
]

check('filters, sorts and groups', { clusters: 0 }, async (page, site) => {
  await page.getByText('There is no cluster in the registry that you may see.').waitFor()
  await site.change({ put: few })
  await page.getByText('4 of 4 clusters').waitFor()
  assert.deepEqual(await rows(page), ['west', 'north', 'south', 'east'], 'the worst is first')

  const search = page.getByRole('searchbox', { name: 'Filter the clusters' })
  for (const [text, found] of [['env=prod', ['north', 'east']], ['PROD !unknown', ['east']], ['refused', ['west']], ['payments v1.37', ['east']], ['nothing', []]]) {
    await search.fill(text)
    assert.deepEqual(await rows(page), found, text)
    await page.getByText(`${found.length} of 4 clusters`).waitFor()
  }
  assert.ok(await page.getByText('No cluster matches.').isVisible())
  await search.fill('')

  const sorted = async (title, up, names) => {
    await sort(page, title)
    assert.deepEqual(await rows(page), names, title)
    assert.equal(await page.getByRole('columnheader', { name: title }).getAttribute('aria-sort'), up)
  }
  await sorted('Cluster', 'ascending', ['east', 'north', 'south', 'west'])
  await sorted('Cluster', 'descending', ['west', 'south', 'north', 'east'])
  await sorted('Version', 'ascending', ['west', 'north', 'east', 'south'])
  await sorted('Region', 'ascending', ['east', 'north', 'south', 'west'])

  const group = page.getByLabel('Group the clusters by')
  await group.selectOption('set')
  assert.deepEqual(await rows(page), ['payments:', 'east', 'west', 'search:', 'south', 'none:', 'north'])
  assert.ok(await page.getByText('2 clusters, 1 available').isVisible())
  await page.locator('.row.group').first().click()
  assert.deepEqual(await rows(page), ['payments:', 'search:', 'south', 'none:', 'north'])
  await group.selectOption('label:env')
  assert.deepEqual(await rows(page), ['prod:', 'east', 'north', 'test:', 'west', 'none:', 'south'])
  await group.selectOption('')

  await page.getByRole('button', { name: /^Not available/ }).click()
  assert.deepEqual(await rows(page), ['west'])
  assert.deepEqual(await page.locator('.chip .count').allTextContents(), ['4', '1', '1', '1', '1'])
})

check('follows a cluster that goes and comes', { clusters: 0, expected: /404 \(Not Found\)/ }, async (page, site) => {
  await site.change({ put: few })
  await page.getByText('4 of 4 clusters').waitFor()
  const kept = await row(page, 'north').elementHandle()
  await site.change({ remove: ['east'] })
  await page.getByText('3 of 3 clusters').waitFor()
  assert.deepEqual(await rows(page), ['west', 'north', 'south'])
  await site.change({ put: [few[0]] })
  await page.getByText('4 of 4 clusters').waitFor()
  const history = row(page, 'east').getByRole('img')
  assert.match(await history.getAttribute('aria-label'), /^available from [\d:]+, not in the registry from [\d:]+, available from [\d:]+$/)

  await row(page, 'east').click()
  const panel = page.locator('.panel')
  await panel.getByText('east says Probed').first().waitFor()
  await site.change({ put: [cluster('east', { available: 'False', reason: 'Timeout' })] })
  await panel.getByText('east says Timeout').first().waitFor()
  assert.match(await row(page, 'east').textContent(), /Not availableTimeout/)
  await site.change({ remove: ['east'] })
  await panel.getByText('It is not in the registry: it was removed, or you may not see it.').waitFor()
  await site.change({ put: [few[0]] })
  await panel.getByText('east says Probed').first().waitFor()
  assert.ok(await kept.evaluate(element => element.isConnected), 'a line that stays was made again')
})

check('says when the registry is away', { clusters: 3 }, async (page, site) => {
  await site.change({ away: true })
  await page.getByRole('alert').getByText(/Clusters: connection lost since [\d:]+; what you see is from [\d:]+\./).waitFor()
  assert.ok(await page.getByText('Not live').isVisible())
  assert.equal((await rows(page)).length, 3, 'what was seen is gone')
  await site.change({ away: false })
  await live(page)
  assert.equal(await page.getByRole('alert').textContent(), '')
})

check('says when the command has ended', { clusters: 3, expected: /ERR_/ }, async (page, site) => {
  await site.kill()
  await page.getByText(/Connection to the command lost since [\d:]+; what you see is from [\d:]+\./).waitFor()
  await page.getByText('run "kubectl registry ui" again').waitFor()
  await accessible(page, 'the command has ended')
})

check('shows registries with their operation, members, certificates and backups', {}, async page => {
  await page.getByRole('link', { name: 'Registries' }).click()
  const fleet = page.getByRole('article', { name: 'ClusterRegistry registries/fleet' })
  for (const text of ['Upgrade v0.3.0 -> v0.4.0: Servers 1/2', '3/3 ready', 'fleet-etcd-1', 'fleet-serving', 'before-v0.4.0', '164 MiB of 4.0 GiB']) await fleet.getByText(text).first().waitFor()
  assert.equal(await fleet.getByRole('progressbar').evaluate(bar => bar.value / bar.max), .5)
  const edge = page.getByRole('article', { name: 'ClusterRegistry registries/edge' })
  await edge.getByText('critical').first().waitFor()
  await edge.getByText('Paused: the operator changes nothing').waitFor()
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it is wider than the window')
})

check('works by keys alone', { clusters: 0 }, async (page, site) => {
  await site.change({ put: few })
  await page.getByText('4 of 4 clusters').waitFor()
  const key = async (...keys) => { for (const one of keys) await page.keyboard.press(one); await settled(page) }
  const focus = () => page.evaluate(() => document.activeElement.getAttribute('aria-label') || document.activeElement.textContent)
  const active = () => page.evaluate(() => document.getElementById(document.activeElement.getAttribute('aria-activedescendant'))?.querySelector('.strong').textContent)
  await key('/')
  assert.equal(await focus(), 'Filter the clusters')
  await page.keyboard.type('e')
  await key('ArrowDown')
  assert.equal(await focus(), 'Clusters')
  assert.equal(await active(), 'west')
  await key('j', 'ArrowDown')
  assert.equal(await active(), 'south')
  await key('k', 'End')
  assert.equal(await active(), 'east')
  await key('Home', 'Enter')
  assert.equal(await focus(), 'west', 'the panel that was opened has the focus')
  assert.equal(new URL(page.url()).hash, '#/clusters/west')
  await key('Tab')
  assert.equal(await focus(), 'Close')
  await key('Tab')
  assert.equal(await focus(), 'Details')
  await key('Escape')
  assert.equal(await focus(), 'Clusters')
  assert.ok(await page.locator('.panel').isHidden())
  assert.equal(await active(), 'west')
  await key('Escape')
  assert.equal(await page.getByRole('searchbox').inputValue(), '')

  await page.getByLabel('Group the clusters by').selectOption('set')
  await page.getByRole('treegrid').focus()
  await key('Home', 'ArrowLeft')
  assert.deepEqual(await rows(page), ['payments:', 'search:', 'south', 'none:', 'north'])
  await key('ArrowRight')
  assert.equal((await rows(page)).length, 7)
  await key('r')
  assert.equal(new URL(page.url()).hash, '#/registries')
  await page.getByRole('article').first().waitFor()
  assert.equal(await focus(), 'Registries', 'arrows scroll what has the focus')
  await key('c')
  assert.equal(await focus(), 'Clusters')
  await key('r', '/')
  assert.equal(await focus(), 'Filter the clusters')
  await key('Escape', '?')
  assert.ok(await page.getByRole('dialog', { name: 'Keys' }).isVisible())
  await key('r')
  assert.equal(new URL(page.url()).hash, '#/clusters', 'a key of the page does something below a dialog')
  await key('Escape')
  assert.ok(await page.getByRole('dialog').isHidden())
})

/** tabs are the names of all that Tab reaches, in order. Each has to show that it has the focus. */
async function tabs(page) {
  const seen = []
  await page.evaluate(() => { globalThis.reached = new WeakSet(); document.activeElement.blur() })
  for (;;) {
    await page.keyboard.press('Tab')
    await settled(page)
    const found = await page.evaluate(() => {
      const e = document.activeElement, style = getComputedStyle(e)
      if (e === document.body || globalThis.reached.has(e)) return undefined
      globalThis.reached.add(e)
      return { name: (e.getAttribute('aria-label') || e.textContent).replace(/[\d,]+$/, ''), shown: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 }
    })
    if (!found) return seen
    assert.ok(found.shown, `nothing shows that "${found.name}" has the focus`)
    seen.push(found.name)
  }
}

check('reaches all that can be used by Tab, and shows where it is', { clusters: 3 }, async page => {
  const top = ['Clusters', 'Registries', 'Dark colors', 'Keys']
  assert.deepEqual(await tabs(page), [
    ...top, 'Filter the clusters', 'All', 'Not available', 'Unknown', 'Not reported', 'Available', 'Group the clusters by',
    'Clusters', 'Cluster', 'Health', 'Version', 'Set', 'Region', 'Certificate', 'Last seen',
  ])
  await page.getByRole('link', { name: 'Registries' }).click()
  await page.reload() // from the top again
  await page.getByRole('article').first().waitFor()
  assert.deepEqual(await tabs(page), [...top, 'Registries'])
})

for (const colors of ['light', 'dark']) {
  check(`has ${colors} colors, and the others by a key`, { clusters: 3, options: { colorScheme: colors } }, async page => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme)
    const bright = () => page.evaluate(() => {
      const of = name => getComputedStyle(document.body)[name].match(/\d+/g).slice(0, 3).reduce((sum, n) => sum + Number(n), 0)
      return of('backgroundColor') > of('color')
    })
    assert.equal(await theme(), colors)
    assert.equal(await bright(), colors === 'light')
    await page.keyboard.press('t')
    assert.notEqual(await theme(), colors)
    assert.equal(await bright(), colors !== 'light')
    await page.reload()
    await live(page)
    assert.notEqual(await theme(), colors, 'what was chosen is forgotten')
  })

  check(`is accessible in ${colors} colors`, { clusters: 100, options: { colorScheme: colors } }, async page => {
    await accessible(page, 'the table')
    await page.getByRole('treegrid').focus()
    await page.keyboard.press('ArrowDown')
    await accessible(page, 'the table with a line that is active')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Reporters' }).waitFor()
    await accessible(page, 'a cluster')
    await page.keyboard.press('Escape')
    await page.getByLabel('Group the clusters by').selectOption('region')
    await page.getByRole('button', { name: /^Not available/ }).click()
    await accessible(page, 'groups')
    await page.getByRole('searchbox').fill('nothing')
    await accessible(page, 'nothing found')
    await page.keyboard.press('?')
    await accessible(page, 'the keys')
    await page.keyboard.press('Escape')
    await page.getByRole('link', { name: 'Registries' }).click()
    await page.getByRole('article').first().waitFor()
    await accessible(page, 'registries')
    await page.setViewportSize({ width: 390, height: 700 })
    await accessible(page, 'registries on a small screen')
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'registries are wider than a small screen')
    await page.getByRole('link', { name: 'Clusters' }).click()
    await accessible(page, 'clusters on a small screen')
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'the table is wider than a small screen')
  })
}

check('shows a cluster by its address, and no cluster for one that makes no sense', { clusters: 0 }, async (page, site) => {
  await site.change({ put: few })
  await page.getByText('4 of 4 clusters').waitFor()
  await page.evaluate(() => { location.hash = '#/clusters/north' })
  await page.locator('.panel').getByText('north says HeartbeatMissing').first().waitFor()
  await page.evaluate(() => { location.hash = '#/clusters/%E0%A4' })
  await page.locator('.panel').waitFor({ state: 'hidden' })
  assert.equal((await rows(page)).length, 4)
})

