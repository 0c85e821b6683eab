export const Ribbon = () => (
  <aside className="ribbon" aria-label="Environment">
    Sandbox: no real money
  </aside>
)
