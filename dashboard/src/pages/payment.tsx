import { Page } from '../components/page.tsx'

export const PaymentPage = () => <Page title="PaymentPage">Soon</Page>
