import './lib/theme.js';
import './ui/app.js';
import { holdFiles, keepFiles } from './lib/shell.js';
import { startNotify } from './notify/index.js';

startNotify();

holdFiles();
addEventListener('load', () => void keepFiles());
