import { Page } from '../components/page.tsx'

export const DevelopersPage = () => <Page title="DevelopersPage">Soon</Page>
