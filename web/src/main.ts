import './ui/app.js';
