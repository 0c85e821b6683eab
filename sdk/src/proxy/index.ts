export {
  type ConfigMistake,
  type ProxyConfig,
  ProxyConfigError,
  type ProxyDefaults,
  type ProxyDiscovery,
  type ProxyRoute,
  type ProxyRouteConfig,
} from './config/config.ts'
export { createProxy, type ProxyOptions, type ProxyServer } from './proxy.ts'
