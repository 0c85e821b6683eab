export {
  type ConfigMistake,
  type ProxyConfig,
  ProxyConfigError,
  type ProxyDefaults,
  type ProxyRoute,
  type ProxyRouteConfig,
} from './config/config.ts'
export { createProxy, type Proxy, type ProxyOptions } from './proxy.ts'
