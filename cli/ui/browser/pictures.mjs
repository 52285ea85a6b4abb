// Takes the pictures of the docs, into the directory that is given.
import { browser, live, serve, settled } from './site.mjs'

const out = process.argv[2] ?? new URL('../../../docs/images/', import.meta.url).pathname
const site = await serve(10000)

async function picture(name, colorScheme, prepare) {
  const context = await (await browser()).newContext({ viewport: { width: 1280, height: 640 }, colorScheme })
  const page = await context.newPage()
  page.setDefaultTimeout(120_000)
  await page.goto(site.url)
  await live(page)
  await page.getByText('10,000 of 10,000 clusters').waitFor()
  await prepare(page)
  await settled(page)
  await page.screenshot({ path: `${out}/${name}.png` })
  await context.close()
}

await picture('clusters-light', 'light', async () => {})
await picture('cluster-dark', 'dark', async page => {
  await page.getByLabel('Group the clusters by').selectOption('region')
  await page.getByRole('searchbox').fill('team=payments')
  await settled(page)
  await page.locator('.lines .row:not(.group)').nth(2).click()
  await page.getByRole('heading', { name: 'Reporters' }).waitFor()
})
await picture('registries-light', 'light', async page => {
  await page.getByRole('link', { name: 'Registries' }).click()
  await page.getByRole('article').first().waitFor()
})
site.end()
await (await browser()).close()
