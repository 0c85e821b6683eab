export const Logo = ({ size = 28 }: { size?: number }) => (
  <svg width={size} height={size} viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" fill="#1f2350" />
    <path d="M18.4 4 7.6 18.2h6.6L12.9 28 24.4 13.4h-7z" fill="#ffc94d" />
  </svg>
)
