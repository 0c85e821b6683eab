import { Page } from '../components/page.tsx'

export const TryItPage = () => <Page title="TryItPage">Soon</Page>
