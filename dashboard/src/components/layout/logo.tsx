/**
 * The mark: a bolt from one side of the yard to the other. The same file is the favicon, and the mark of the documentation site.
 */
export const Logo = ({ size = 28 }: { size?: number }) => (
  <img src={`${import.meta.env.BASE_URL}icon.svg`} width={size} height={size} alt="" />
)

export const Wordmark = ({ area, size }: { area?: string; size?: number }) => (
  <>
    <Logo {...(size && { size })} />
    <span>Boltyard{area && <span className="brand-area"> {area}</span>}</span>
  </>
)
