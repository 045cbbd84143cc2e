/* Enemies: how each kind moves, how they hurt and how they are beaten. */
#include "game.h"

enum { STUN_FRAMES = 20, KNOCK_FRAMES = 8, SHOT_PAUSE = 70, BOSS_SHOT_PAUSE = 50, BOMB_REACH = 26 };
enum { MIN_X = 8, MAX_X = 151, MIN_Y = 8, MAX_Y = 119, TOUCH = 10, BOSS_TOUCH = 18, SWORD_TOUCH = 12, BOSS_SWORD_TOUCH = 22 };

void enemy_spawn(u8 slot, u8 kind, u8 pos) {
    Object *enemy = object_spawn(enemy_slot(slot), kind, pos);
    enemy->collision_type = 0x80;
    enemy->damage = kind == ENEMY_BOSS ? -8 : -4;
    enemy->health = kind == ENEMY_BOSS ? 8 : kind == ENEMY_BAT ? 1 : kind == ENEMY_CHARGER ? 3 : 2;
    if (kind == ENEMY_BOSS) {
        enemy->y += 8;
        enemy->x += 8;
        enemy->half_width = enemy->half_height = 14;
    }
    enemy->direction = random() & 3;
    enemy->counter1 = 16 + (random() & 31);
    enemy->counter2 = SHOT_PAUSE;
    ++num_enemies;
}

/* Ground enemies keep off walls, water, holes and the outer cells, which lead to other rooms. */
static u8 blocked(const Object *enemy, u8 direction) {
    u8 reach = enemy->half_width;
    u8 x = enemy->x + (direction == RIGHT ? reach : direction == LEFT ? -reach : 0);
    u8 y = enemy->y + (direction == DOWN ? reach : direction == UP ? -reach : 0);
    if (x < MIN_X + 8 || x > MAX_X - 8 || y < MIN_Y + 8 || y > MAX_Y - 8) return 1;
    return enemy->id != ENEMY_BAT && room_collisions[(y & 0xF0) | (x >> 4)] != 0;
}

static u8 advance(Object *enemy, u8 direction) {
    if (blocked(enemy, direction)) return 0;
    enemy->x += step_x[direction];
    enemy->y += step_y[direction];
    return 1;
}

static u8 toward_hero(const Object *enemy) {
    u8 dx = enemy->x > hero.x ? enemy->x - hero.x : hero.x - enemy->x;
    u8 dy = enemy->y > hero.y ? enemy->y - hero.y : hero.y - enemy->y;
    if (dx > dy) return hero.x > enemy->x ? RIGHT : LEFT;
    return hero.y > enemy->y ? DOWN : UP;
}

static void turn(Object *enemy) {
    enemy->direction = random() & 3;
    enemy->counter1 = 24 + (random() & 31);
}

static void walk(Object *enemy) {
    if (!--enemy->counter1) turn(enemy);
    if (!advance(enemy, enemy->direction)) enemy->counter1 = 1;
}

/* In line with the hero it runs at him. */
static void charge(Object *enemy) {
    u8 dx = enemy->x - hero.x + 8, dy = enemy->y - hero.y + 8;
    if (enemy->substate) {
        if (--enemy->substate && advance(enemy, enemy->direction)) return;
        enemy->substate = 0;
        turn(enemy);
        return;
    }
    if (dx < 16 || dy < 16) {
        enemy->direction = toward_hero(enemy);
        enemy->substate = 64;
    } else if (frame_counter & 1) {
        walk(enemy);
    }
}

/* Flutters over walls in slanted lines, with rests. */
static void flutter(Object *enemy) {
    if (!--enemy->counter1) {
        turn(enemy);
        enemy->substate = enemy->substate ? 0 : 1 + (random() & 1);
    }
    if (!enemy->substate) return;
    if (!advance(enemy, enemy->direction)) enemy->direction ^= 2;
    if (frame_counter & 1) advance(enemy, (enemy->direction + enemy->substate) & 3);
}

static void shoot(const Object *enemy, u8 direction) {
    Object *shot = part_spawn(PART_SHOT, 0, enemy->x, enemy->y);
    if (!shot) return;
    shot->direction = direction;
    shot->collision_type = 0x80;
    shot->damage = -4;
}

static void spit(Object *enemy) {
    enemy->direction = toward_hero(enemy);
    if (--enemy->counter2) return;
    enemy->counter2 = SHOT_PAUSE;
    shoot(enemy, enemy->direction);
}

/* Paces along its wall and spits at the hero. */
static void boss_move(Object *enemy) {
    if (!(enemy->direction & 1)) enemy->direction = RIGHT;
    if (frame_counter & 1 || WORLD->difficulty == 2) {
        if (!advance(enemy, enemy->direction)) enemy->direction ^= 2;
    }
    if (--enemy->counter2) return;
    enemy->counter2 = BOSS_SHOT_PAUSE;
    shoot(enemy, toward_hero(enemy));
}

static void move(Object *enemy) {
    if (enemy->knockback) {
        --enemy->knockback;
        advance(enemy, enemy->knockback_angle >> 3);
        return;
    }
    switch (enemy->id) {
    case ENEMY_WALKER:
        if ((frame_counter & 1) || WORLD->difficulty == 2) walk(enemy);
        break;
    case ENEMY_CHARGER:
        charge(enemy);
        break;
    case ENEMY_BAT:
        flutter(enemy);
        break;
    case ENEMY_SPITTER:
        spit(enemy);
        break;
    default:
        boss_move(enemy);
    }
}

static void drop(const Object *enemy) {
    u8 luck = random() & 7;
    if (luck < 3) part_spawn(PART_DROP, DROP_RUPEE, enemy->x, enemy->y);
    else if (luck == 3) part_spawn(PART_DROP, DROP_HEART, enemy->x, enemy->y);
    else if (luck == 4) part_spawn(PART_DROP, owns(T_BOMBS) ? DROP_BOMBS : DROP_FIVE, enemy->x, enemy->y);
}

static void beaten(Object *enemy) {
    u8 was_boss = enemy->id == ENEMY_BOSS;
    enemy->enabled = 0;
    --num_enemies;
    if (!was_boss && enemies_killed < 1000) ++enemies_killed;
    sound(was_boss ? SOUND_BOSS_DIES : SOUND_KILL);
    part_spawn(PART_PUFF, 0, enemy->x, enemy->y);
    drop(enemy);
}

static void hit(Object *enemy, u8 direction) {
    if (enemy->invincibility) return;
    enemy->invincibility = STUN_FRAMES;
    if (enemy->id != ENEMY_BOSS && enemy->id != ENEMY_SPITTER) enemy->knockback = KNOCK_FRAMES;
    enemy->knockback_angle = direction << 3;
    enemy->last_hit = 0x80;
    sound(enemy->id == ENEMY_BOSS ? SOUND_BOSS_HIT : SOUND_HIT);
    if (!--enemy->health) beaten(enemy);
}

/* What can hurt an enemy: the sword, a thrown rock, a blast. */
static void take_hits(Object *enemy) {
    u8 reach = enemy->id == ENEMY_BOSS ? BOSS_SWORD_TOUCH : SWORD_TOUCH;
    if (sword_timer && is_near(enemy, weapon.x, weapon.y, reach)) hit(enemy, weapon.direction);
    if (enemy->enabled && carried.enabled && carried.state == 2 && is_near(enemy, carried.x, carried.y, reach)) {
        carried.enabled = 0;
        part_spawn(PART_PUFF, 0, carried.x, carried.y);
        hit(enemy, carried.direction);
    }
    if (enemy->enabled && bomb.enabled && bomb.state == 2 && is_near(enemy, bomb.x, bomb.y, BOMB_REACH)) hit(enemy, hero.direction);
}

void enemies_update(void) {
    u8 n;
    Object *enemy;
    for (n = 0; n < ENEMIES; ++n) {
        enemy = enemy_slot(n);
        if (!enemy->enabled) continue;
        enemy->last_hit = 0;
        if (enemy->invincibility) --enemy->invincibility;
        take_hits(enemy);
        if (!enemy->enabled) continue;
        move(enemy);
        if (hero.z > -8 && is_near(enemy, hero.x, hero.y, enemy->id == ENEMY_BOSS ? BOSS_TOUCH : TOUCH))
            hero_hurt((u8)(-enemy->damage) >> 1, enemy->direction);
    }
}
