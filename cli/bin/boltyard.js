#!/usr/bin/env node
// npm links a command only if its file exists at install time; in a fresh clone, dist/ is built later.
import '../dist/boltyard.js'
