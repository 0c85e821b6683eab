import { Page } from '../components/page.tsx'

export const CreditPage = () => <Page title="CreditPage">Soon</Page>
