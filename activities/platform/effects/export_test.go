package effects

// ReconcileImagesAt is [ReconcileImages] with another clock.
var ReconcileImagesAt = reconcileImages
