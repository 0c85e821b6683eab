import { grouped, sats, satsOfMsat } from '../text/format.ts'

export const Amount = ({ sat }: { sat: number }) => <span className="amount">{sats(sat)}</span>

export const MsatAmount = ({ msat }: { msat: number }) => <span className="amount">{satsOfMsat(msat)}</span>

export const Count = ({ of }: { of: number }) => <span className="amount">{grouped(of)}</span>
