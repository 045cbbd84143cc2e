;; Start-up, interrupts and the few routines that cannot be C.
;; The machine runs this at power-on; `main` (main.c) never returns.
	.module start
	.globl	_main
	.area	_HEADER (ABS)
	.org	0x40
	jp	vblank
	.org	0x48
	jp	line_reached
	.org	0x50
	reti
	.org	0x58
	reti
	.org	0x60
	reti
	.org	0x100
	nop
	jp	start
	.org	0x150
start:
	di
	ld	sp, #0xC2E0		; the stack lies below the variables of the table
	ld	hl, #0xC000
	ld	de, #0x2000		; clear work RAM
1$:	xor	a
	ld	(hl+), a
	dec	de
	ld	a, d
	or	e
	jr	nz, 1$
	ld	c, #0x80		; copy the sprite transfer to high RAM, where it must run
	ld	b, #transfer_end - transfer
	ld	hl, #transfer
2$:	ld	a, (hl+)
	ldh	(c), a
	inc	c
	dec	b
	jr	nz, 2$
	call	_main
3$:	jr	3$

;; The screen was drawn. Status bar, dialog and menu live in the window layer, which is switched on and off
;; within the frame by its column (clearing its bit in the LCD register would end it for the whole frame).
vblank:
	push	af
	ld	a, #7
	ldh	(0x4B), a		; window shown
	ld	a, #15
	ldh	(0x45), a		; call me at line 15
	ld	a, #1
	ldh	(0x8C), a		; tell wait_vblank
	pop	af
	reti

line_reached:
	push	af
1$:	ldh	a, (0x41)		; wait for the end of this line
	and	#3
	jr	nz, 1$
	ldh	a, (0x45)
	cp	#15
	jr	nz, 2$
	ldh	(0x8E), a		; tell wait_line
	ldh	a, (0x8F)		; a menu covers everything: leave the window on
	or	a
	jr	nz, 3$
	ld	a, #200			; hide the window: the room begins
	ldh	(0x4B), a
	ldh	a, (0x8D)		; line where the dialog begins, or 0
	ldh	(0x45), a
3$:	pop	af
	reti
2$:	ld	a, #7			; the dialog begins
	ldh	(0x4B), a
	pop	af
	reti

transfer:
	ld	a, #0xCB
	ldh	(0x46), a
	ld	a, #40
1$:	dec	a
	jr	nz, 1$
	ret
transfer_end:

	.area	_CODE
	.globl	_wait_vblank, _wait_line, _oam_dma, _vram_flush, _read_pad
_wait_vblank::
1$:	halt
	nop
	ldh	a, (0x8C)
	or	a
	jr	z, 1$
	xor	a
	ldh	(0x8C), a
	ret

_oam_dma::
	jp	0xFF80

;; An emulator hands over between frames at line 0, which is in the middle of what a game does after VBlank.
;; The engine therefore updates only after line 15, so that its RAM is at rest when it is read.
_wait_line::
	xor	a
	ldh	(0x8E), a
1$:	halt
	nop
	ldh	a, (0x8E)
	or	a
	jr	z, 1$
	ret

;; Queue of jobs at C300: address high, address low, flags, count, bytes...; a high byte of 0 ends it.
;; Flags: 1 = attribute bank, 2 = go down a column instead of along a row.
_vram_flush::
	ld	de, #0xC300
next:	ld	a, (de)
	or	a
	jr	z, done
	ld	h, a
	inc	e
	ld	a, (de)
	ld	l, a
	inc	e
	ld	a, (de)
	ld	b, a
	inc	e
	and	#1
	ldh	(0x4F), a
	ld	a, (de)
	ld	c, a
	inc	e
	bit	1, b
	jr	nz, column
row:	ld	a, (de)
	inc	e
	ld	(hl+), a
	dec	c
	jr	nz, row
	jr	next
column:	ld	a, (de)
	inc	e
	ld	(hl), a
	ld	a, l
	add	a, #32
	ld	l, a
	jr	nc, 1$
	inc	h
	res	2, h			; stay inside the map at 9800-9BFF
1$:	dec	c
	jr	nz, column
	jr	next
done:	ldh	(0x4F), a
	ld	(0xC300), a
	ret

;; Returns in a the keys held: bit 0 A, 1 B, 2 select, 3 start, 4 right, 5 left, 6 up, 7 down
_read_pad::
	ld	a, #0x20
	ldh	(0x00), a
	ldh	a, (0x00)
	ldh	a, (0x00)
	cpl
	and	#0x0F
	swap	a
	ld	b, a
	ld	a, #0x10
	ldh	(0x00), a
	ldh	a, (0x00)
	ldh	a, (0x00)
	ldh	a, (0x00)
	cpl
	and	#0x0F
	or	b
	ld	b, a
	ld	a, #0x30
	ldh	(0x00), a
	ld	a, b
	ret

;; Order of the areas in ROM and RAM.
	.area	_HOME
	.area	_GSINIT
	.area	_GSFINAL
	.area	_DATA
	.area	_INITIALIZED
	.area	_INITIALIZER
	.area	_BSS
