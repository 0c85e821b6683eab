import { Page } from '../components/page.tsx'

export const OverviewPage = () => <Page title="OverviewPage">Soon</Page>
