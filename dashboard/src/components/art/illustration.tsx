import type { ReactNode } from 'react'

const BOLT = 'M6 0 0 8h4l-2 7 7-9H5z'

/** Drawn on a canvas of 200 × 120. Lines and fills get the colors of the theme from illustrations.css. */
const DRAWINGS = {
  nodes: (
    <>
      <Fence />
      <path className="art-new" d="M72 104V52l28-20 28 20v52z" />
      <path className="art-accent" d="M100 62v22M89 73h22" />
      <Bolt at="140 22" />
    </>
  ),
  payments: (
    <>
      <Fence />
      <path className="art-solid" d="M64 104V56h12v48zM124 104V56h12v48z" />
      <path className="art-line" d="M60 56h80M76 72h12M112 72h12" />
      <circle className="art-coin" cx="100" cy="30" r="17" />
      <path className="art-on-coin" transform="translate(95.5 22)" d={BOLT} />
      <path className="art-new" d="M100 54v36M94 84l6 7 6-7" />
    </>
  ),
  keys: (
    <>
      <Fence />
      <path className="art-solid" d="M58 24h84v44a6 6 0 0 1-6 6H64a6 6 0 0 1-6-6z" />
      <path className="art-line" d="M50 24h100M100 74v30M76 24v10M124 24v10" />
      <path className="art-new" d="M76 40a6 6 0 1 1 0 12 6 6 0 0 1 0-12M76 52v14" />
      <path className="art-accent" d="M124 34a9 9 0 1 1 0 18 9 9 0 0 1 0-18M124 52v38M124 78h9M124 88h7" />
    </>
  ),
  webhooks: (
    <>
      <path className="art-line" d="M16 104h168" />
      <rect className="art-solid" x="24" y="62" width="44" height="42" rx="6" />
      <rect className="art-solid" x="132" y="62" width="44" height="42" rx="6" />
      <path className="art-line" d="M34 74h24M34 84h14M142 74h24M142 84h14" />
      <path className="art-accent-dashed" d="M46 60C52 22 148 22 154 56" />
      <path className="art-accent" d="m147 49 7 8 6-9" />
      <Bolt at="96 22" />
    </>
  ),
  activity: (
    <>
      <Fence />
      <rect className="art-solid" x="62" y="26" width="76" height="78" rx="6" />
      <path className="art-line" d="M86 20h28v12H86zM74 48h20M74 88h36" />
      <path className="art-accent" d="M74 68h16l5-12 8 22 6-10h17" />
    </>
  ),
  search: (
    <>
      <path className="art-new" d="M28 34h92M28 60h60M28 86h74" />
      <path className="art-line" d="M16 104h168" />
      <circle className="art-lens" cx="124" cy="58" r="24" />
      <path className="art-accent" d="M124 34a24 24 0 1 1 0 48 24 24 0 0 1 0-48M142 76l20 22" />
      <path className="art-line" d="M114 58h20" />
    </>
  ),
  signpost: (
    <>
      <Fence />
      <path className="art-line" d="M100 104V18" />
      <path className="art-solid" d="M58 26h62l12 11-12 11H58z" />
      <path className="art-solid" d="M142 58H80L68 69l12 11h62z" />
      <path className="art-accent" d="M70 37h38M94 69h36" />
      <path className="art-line" d="M84 104q4-10 8 0M108 104q4-8 8 0" />
    </>
  ),
  unplugged: (
    <>
      <path className="art-line" d="M16 104h168M16 70h34M184 70h-34" />
      <path className="art-solid" d="M50 52h20a10 10 0 0 1 10 10v16a10 10 0 0 1-10 10H50z" />
      <path className="art-solid" d="M150 52h-20a10 10 0 0 0-10 10v16a10 10 0 0 0 10 10h20z" />
      <path className="art-accent" d="M80 64h10M80 76h10" />
      <path className="art-line" d="M126 64h-6M126 76h-6" />
      <Bolt at="96 26" />
      <path className="art-new" d="m88 34-8-8M114 34l8-8" />
    </>
  ),
  requests: (
    <>
      <path className="art-line" d="M16 104h168" />
      <rect className="art-solid" x="48" y="24" width="104" height="80" rx="8" />
      <path className="art-line" d="M48 42h104M58 33h2M66 33h2M74 33h2" />
      <path className="art-accent" d="m62 56 9 8-9 8M78 74h16" />
      <path className="art-new" d="M62 88h60" />
    </>
  ),
  ledger: (
    <>
      <Fence />
      <path className="art-solid" d="M70 92c0-4 13-7 30-7s30 3 30 7v7c0 4-13 7-30 7s-30-3-30-7z" />
      <path className="art-new" d="M70 76c0-4 13-7 30-7s30 3 30 7M70 76v10M130 76v10" />
      <circle className="art-coin" cx="100" cy="36" r="17" />
      <path className="art-on-coin" transform="translate(95.5 28)" d={BOLT} />
    </>
  ),
  yard: (
    <>
      <path className="art-line" d="M4 104h192" />
      <path className="art-solid" d="M28 104V62l20-14 20 14v42zM132 104V62l20-14 20 14v42z" />
      <path className="art-solid" d="M72 104V44l28-20 28 20v60z" />
      <path className="art-line" d="M42 104V84h12v20M146 104V84h12v20M8 104V86m8 18V86M4 92h16M184 104V86m8 18V86m-12 6h16" />
      <path className="art-bolt" transform="translate(86 42) scale(3.1)" d={BOLT} />
      <path className="art-accent-dashed" d="M48 40C52 14 80 8 98 16M152 40c-4-26-32-32-50-24" />
    </>
  ),
} satisfies Record<string, ReactNode>

export type Drawing = keyof typeof DRAWINGS

/** Decoration only: the text next to it says everything. */
export const Illustration = ({ of }: { of: Drawing }) => (
  <svg className="art" viewBox="0 0 200 120" width={200} height={120} aria-hidden="true">
    {DRAWINGS[of]}
  </svg>
)

/** The fence of the yard, on both sides of the drawing. */
function Fence() {
  return <path className="art-line" d="M10 104h180M18 104V86m10 18V86m10 18V86M14 92h28M162 104V86m10 18V86m10 18V86m-24 6h28" />
}

function Bolt({ at }: { at: string }) {
  return <path className="art-bolt" transform={`translate(${at}) scale(1.4)`} d={BOLT} />
}
