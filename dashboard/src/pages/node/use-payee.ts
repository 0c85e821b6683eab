import { useEffect, useState } from 'react'

export type Payee = { key: string } | 'loading' | 'invalid' | 'not-loaded'

/** Who signed the invoice. Also `loading` if there is no invoice. */
export function usePayee(invoice: string | undefined): Payee {
  const [read, setRead] = useState<{ invoice: string; payee: Payee } | null>(null)
  useEffect(() => {
    if (invoice === undefined) return
    let isWanted = true
    import('../../payee.ts')
      .then(
        ({ payeeOf }): Payee => {
          const key = payeeOf(invoice)
          return key === undefined ? 'invalid' : { key }
        },
        (): Payee => 'not-loaded',
      )
      .then((payee) => {
        if (isWanted) setRead({ invoice, payee })
      }, noop)
    return () => {
      isWanted = false
    }
  }, [invoice])
  // Never returns the payee of the previous invoice.
  return read !== null && read.invoice === invoice ? read.payee : 'loading'
}

const noop = (): void => {}
