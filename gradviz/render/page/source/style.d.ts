// esbuild puts what is imported so into page.css.
declare module "*.css";
