import { Page } from '../components/page.tsx'

export const NodePage = () => <Page title="NodePage">Soon</Page>
