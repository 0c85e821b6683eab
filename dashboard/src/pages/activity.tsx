import { Page } from '../components/page.tsx'

export const ActivityPage = () => <Page title="ActivityPage">Soon</Page>
