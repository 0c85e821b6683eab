import { SegmentedControl } from '@mantine/core'
import { useColorScheme } from '../../components/layout/theme-toggle.tsx'
import { shortcuts } from '../../components/palette/keys.ts'
import { useNow } from '../../components/time.tsx'
import { exact, sats } from '../../text/format.ts'
import { setUnit, useUnit } from '../../unit.ts'

/** Remembered by this browser, not by the account. */
export function Display() {
  const { colorScheme, setColorScheme } = useColorScheme()
  const unit = useUnit()
  const now = useNow(60)
  return (
    <section className="card" aria-labelledby="display">
      <h2 id="display">Display</h2>
      <p className="small dim">Remembered in this browser.</p>
      <dl className="facts settings-facts">
        <dt>Theme</dt>
        <dd>
          <SegmentedControl
            aria-label="Theme"
            value={colorScheme}
            onChange={(value) => setColorScheme(value === 'light' || value === 'dark' ? value : 'auto')}
            data={[
              { value: 'auto', label: 'Same as system' },
              { value: 'light', label: 'Light' },
              { value: 'dark', label: 'Dark' },
            ]}
          />
        </dd>
        <dt>Amounts</dt>
        <dd>
          <SegmentedControl
            aria-label="Unit of amounts"
            value={unit}
            onChange={(value) => setUnit(value === 'btc' ? 'btc' : 'sat')}
            data={[
              { value: 'sat', label: 'sat' },
              { value: 'btc', label: 'BTC' },
            ]}
          />
          <div className="small dim">
            For example <span className="amount">{sats(123_456)}</span>. You always enter amounts in sat.
          </div>
        </dd>
        <dt>Keyboard shortcuts</dt>
        <dd>
          <SegmentedControl
            aria-label="Keyboard shortcuts"
            value={shortcuts.use()}
            onChange={(value) => shortcuts.set(value === 'off' ? 'off' : 'on')}
            data={[
              { value: 'on', label: 'On' },
              { value: 'off', label: 'Off' },
            ]}
          />
          <div className="small dim">
            Single keys, such as <kbd>j</kbd> and <kbd>k</kbd>. Press <kbd>?</kbd> to see them all.
          </div>
        </dd>
        <dt>Dates and times</dt>
        <dd>
          {exact(now)}
          <div className="small dim">In the format and time zone of your browser.</div>
        </dd>
      </dl>
    </section>
  )
}
