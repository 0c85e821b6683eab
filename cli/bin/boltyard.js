#!/usr/bin/env node
// npm links a command at install only if its file exists then; in a fresh clone dist/ is built later.
import '../dist/boltyard.js'
