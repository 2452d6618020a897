/** Keys of every page. */
