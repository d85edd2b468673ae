// Package images holds the job types that make smaller pictures of uploaded
// ones: [PhotoVariants] and [LogoAvatarVariants].
//
// A run reads the upload, and stores its variants under keys that are made of
// the content's hash and the recipe's, each with a conditional PUT, and last a
// manifest that names them. So a run may be repeated or cut off anywhere: what
// is stored is found again, and nothing is stored twice. See docs/images.md.
package images
