import { Page } from '../components/page.tsx'

export const GatewayPage = () => <Page title="GatewayPage">Soon</Page>
